"""What every HTTP adapter shares: key header, request fingerprint, kept answers, refusals; no framework.

An adapter hands in what it read from its server as a `Request`, asks a `Guard` what may happen, and sends
the `HTTPAnswer` that comes of it. Where the application is to run, its `Run` is told how that ended; a
`Collector` does so at the end of a stream. Where requests come as CGI meta-variables, as in WSGI,
`read_request` and its neighbours read them.

The rules are those of RFC 9110, RFC 9457 (problem answers), RFC 9651 (structured fields) and the
Idempotency-Key header draft of the IETF HTTPAPI group.
"""

from idemcore.http.answer import HTTPAnswer, kept_answer
from idemcore.http.callables import refuse_unfit
from idemcore.http.cgi import header_variable, method_of, read_request, request_of
from idemcore.http.collector import Collector
from idemcore.http.fingerprint_parts import query_parameters
from idemcore.http.guard import Guard
from idemcore.http.headers import HeaderFilter
from idemcore.http.kept_answers import AnswerHead, everything, final_answers, successes, successes_and
from idemcore.http.policy import SAFE_METHODS, HTTPOptions, HTTPPolicy
from idemcore.http.problem import Problem
from idemcore.http.processes import warn_of_split_memory
from idemcore.http.request import Request
from idemcore.http.run import NOTHING, Run

__all__ = [
    "AnswerHead",
    "Collector",
    "Guard",
    "HTTPAnswer",
    "HTTPOptions",
    "HTTPPolicy",
    "HeaderFilter",
    "NOTHING",
    "Problem",
    "Request",
    "Run",
    "SAFE_METHODS",
    "everything",
    "final_answers",
    "header_variable",
    "kept_answer",
    "method_of",
    "query_parameters",
    "read_request",
    "refuse_unfit",
    "request_of",
    "successes",
    "successes_and",
    "warn_of_split_memory",
]
