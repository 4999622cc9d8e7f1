"""The scripts, each one verb: Redis runs a script alone, so what it checks still holds when it writes.

The clock is Redis' own. A script writes nothing before the one write that may be refused for want of
memory, so it is carried out whole or not at all. Every record whose claim has not ended well stands in
the index beside it, scored with the time when it may be swept; a record may expire there by itself, and
the index still tells of it. KEYS: the record, the index.
"""

from __future__ import annotations

import hashlib
from typing import Final

from idemcore.record import FORMAT

_CLOCK: Final = """
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]

-- One string, for a list is dearer to take apart than the time is.
local function report(value) return struct.pack('>d', now) .. value end
"""

_LIBRARY: Final = (
    """
local HEAD = '>Bc1c1c1I4ddddHHI4I4I4'

-- The record in a value; nil where it cannot be understood. `tail` holds what does not stand in the value.
local function read(value, tail)
  if #value < 56 then return nil end
  local r = {}
  local tokens, fingerprints
  r.format, r.state, r.hold, r.kind, r.attempt, r.claimed, r.lease, r.expires, r.completed,
    tokens, fingerprints, r.reasons, r.metas, r.bodies = struct.unpack(HEAD, value)
  r.token = string.sub(value, 57, 56 + tokens)
  r.fingerprint = string.sub(value, 57 + tokens, 56 + tokens + fingerprints)
  r.tail = tail or string.sub(value, 57 + tokens + fingerprints)
  local answered = r.kind == 'r' or r.kind == 'x' or r.kind == 'h'
  local finished = r.state == 'D' or r.state == 'T'
  if r.format ~= """
    + str(FORMAT)
    + """ or #r.tail ~= r.reasons + r.metas + r.bodies
    or not (finished or r.state == 'C' or r.state == 'R' or r.state == 'U')
    or answered ~= (r.state == 'D') or not (answered or r.kind == '-')
    or finished ~= (r.completed > 0) or not (r.hold == '0' or r.hold == '1')
    or #r.fingerprint ~= fingerprints
  then return nil end
  return r
end

-- What stands: the value, false where there is none; and the record in it.
local function look()
  local value = redis.pcall('GET', KEYS[1])
  if not value then return false, nil end
  if type(value) == 'table' then return '', nil end
  return value, read(value)
end

-- A duration, no longer than what Redis can hold.
local function span(number) return math.min(number, 2 ^ 61) end

local function whole(number) return string.format('%.0f', number) end

local function store(r)
  local value = struct.pack(HEAD, r.format, r.state, r.hold, r.kind, r.attempt,
    r.claimed, r.lease, r.expires, r.completed,
    #r.token, #r.fingerprint, r.reasons, r.metas, r.bodies) .. r.token .. r.fingerprint .. r.tail
  if r.hold == '1' then
    redis.call('SET', KEYS[1], value)
  else
    redis.call('SET', KEYS[1], value, 'PXAT', whole(math.ceil(r.expires / 1000)))
  end
  if r.state == 'C' or r.state == 'U' then
    redis.call('ZADD', KEYS[2], r.hold == '1' and '+inf' or whole(r.expires), KEYS[1])
  else
    redis.call('ZREM', KEYS[2], KEYS[1])
  end
end

local function remove()
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], KEYS[1])
end

local function leased(r) return r.state == 'C' and r.lease > now end
local function abandoned(r) return r.state == 'C' and r.lease <= now end
local function forgettable(r) return r.expires <= now and r.hold == '0' and not leased(r) end

local function begin(r)
  r.claimed, r.lease, r.expires = now, now + span(r.lease), now + span(r.expires)
  store(r)
end

local function settle(r, state, hold, kept)
  r.state, r.hold, r.lease = state, hold, now
  r.expires = math.max(r.expires, now + span(kept))
end

local function say(r, reason)
  r.tail, r.reasons, r.metas, r.bodies = reason, #reason, 0, 0
end

local function answer(r, outcome)
  r.kind, r.tail, r.reasons, r.metas, r.bodies =
    outcome.kind, outcome.tail, outcome.reasons, outcome.metas, outcome.bodies
  r.completed = now
  settle(r, outcome.state, '0', outcome.expires)
end

local function says(r, outcome)
  return r.state == outcome.state and r.kind == outcome.kind and r.reasons == outcome.reasons
    and r.metas == outcome.metas and r.tail == outcome.tail
end
"""
)


class Script:
    """A script, and the digest that Redis knows it by once it has seen its text.

    Args:
        body: what comes after the library.
        first: what comes before it: the usual case, written out, for making the library's functions takes
            longer than all else that a script does.
    """

    __slots__ = ("digest", "text")

    def __init__(self, body: str, first: str = "") -> None:
        self.text: Final = _CLOCK + first + _LIBRARY + body
        # The name that the protocol gives to it: nothing is protected by this digest.
        self.digest: Final = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest().encode()


LOOK: Final = Script(
    "",
    first="""
local value = redis.pcall('GET', KEYS[1])
do return value and report(type(value) == 'string' and value or '') end
""",
)
"""No arguments. The time and the value, or nil."""

RESERVE: Final = Script(
    """
local value, r = look()
if value and not (r and forgettable(r)) then return report(value) end
begin(read(ARGV[1]))
return false
""",
    first="""
local found = redis.pcall('GET', KEYS[1])
if not found then
  local _, lease, kept = struct.unpack('>ddd', ARGV[1], 9)
  lease, kept = math.min(lease, 2 ^ 61), math.min(kept, 2 ^ 61)
  local value = string.sub(ARGV[1], 1, 8) .. struct.pack('>ddd', now, now + lease, now + kept)
    .. string.sub(ARGV[1], 33)
  local ends = string.format('%.0f', now + kept)
  if string.sub(ARGV[1], 3, 3) == '1' then
    redis.call('SET', KEYS[1], value)
    ends = '+inf'
  else
    redis.call('SET', KEYS[1], value, 'PXAT', string.format('%.0f', math.ceil((now + kept) / 1000)))
  end
  redis.call('ZADD', KEYS[2], ends, KEYS[1])
  return false
end
if type(found) == 'string' and #found >= 56 and struct.unpack('>d', found, 25) > now then
  return report(found)
end
""",
)
"""The claim. Nil where it was inserted, else the time and the value that stands."""

TAKE_OVER: Final = Script("""
local _, r = look()
if not r then return 0 end
local claim = read(ARGV[1])
if r.token == ARGV[2] and (r.state == 'R' or abandoned(r)) then
  claim.fingerprint = r.fingerprint
  begin(claim)
  return 1
end
return leased(r) and r.token == claim.token and 1 or 0
""")
"""The claim, the token seen. 1 where it was taken over."""

COMPLETE: Final = Script(
    """
local value, r = look()
local outcome = read(ARGV[1], ARGV[2])
if r and ((r.token == outcome.token and r.completed == 0) or (r.fingerprint == outcome.fingerprint
    and (r.state == 'R' or (abandoned(r) and r.hold == '0')))) then
  r.token, r.attempt = outcome.token, outcome.attempt
  answer(r, outcome)
  store(r)
elseif not value or (r and forgettable(r)) then
  outcome.claimed, outcome.lease, outcome.completed = now, now, now
  outcome.expires = now + span(outcome.expires)
  store(outcome)
elseif not (r and r.token == outcome.token and says(r, outcome)) then
  return report(value)
end
return false
""",
    first="""
local found = redis.pcall('GET', KEYS[1])
local mine = string.sub(ARGV[1], 57)
if type(found) == 'string' and string.find(found, '^\\1C[01]%-')
  and string.sub(found, 41) == string.sub(ARGV[1], 41, 44) .. string.rep('\\0', 12) .. mine then
  local ends = math.max(struct.unpack('>d', found, 25),
    now + math.min(struct.unpack('>d', ARGV[1], 25), 2 ^ 61))
  local value = string.sub(ARGV[1], 1, 8) .. string.sub(found, 9, 16) .. struct.pack('>ddd', now, ends, now)
    .. string.sub(ARGV[1], 41) .. ARGV[2]
  redis.call('SET', KEYS[1], value, 'PXAT', string.format('%.0f', math.ceil(ends / 1000)))
  redis.call('ZREM', KEYS[2], KEYS[1])
  return false
end
""",
)
"""The outcome without its tail, the tail. Nil where it is recorded, else the time and what stands."""

RELEASE: Final = Script("""
local value, r = look()
local to = ARGV[2]
if not value then
  if to ~= 'deleted' then return 0 end
  redis.call('ZREM', KEYS[2], KEYS[1])
  return 1
end
if not r or r.token ~= ARGV[1] then return 0 end
if r.state ~= 'C' then return r.state == to and 1 or 0 end
if to == 'deleted' then
  remove()
else
  say(r, ARGV[3])
  settle(r, to, to == 'U' and '1' or '0', tonumber(ARGV[4]))
  store(r)
end
return 1
""")
"""The owner's token, the state's letter or ``deleted``, the reason, the retention. 1 where it is done."""

RENEW: Final = Script("""
local _, r = look()
if not (r and r.state == 'C' and r.token == ARGV[1]) then return false end
r.lease = math.min(now + span(ARGV[2] + 0), r.claimed + span(ARGV[3] + 0))
store(r)
return r.lease - now
""")
"""The owner's token, lease, max_hold. What is left of the lease, or nil."""

RESOLVE: Final = Script("""
local _, r = look()
if not r then return 0 end
local outcome = ARGV[4] and read(ARGV[4], ARGV[5])
if r.token == ARGV[1] and (r.state == 'U' or abandoned(r) or (outcome and r.state == 'R')) then
  r.token = ARGV[2]
  if outcome then
    answer(r, outcome)
  else
    say(r, '')
    settle(r, 'R', '0', tonumber(ARGV[3]))
  end
  store(r)
  return 1
end
if r.token ~= ARGV[2] then return 0 end
if outcome then return says(r, outcome) and 1 or 0 end
return r.state == 'R' and 1 or 0
""")
"""The token seen, the one to leave, the retention; for an outcome its two parts. 1 where it is done."""

FORGET: Final = Script("""
local value, r = look()
if value and not (r and r.token == ARGV[1] and not leased(r)) then return 0 end
remove()
return 1
""")
"""The token seen. 1 where the record is gone."""

SUMMARY: Final = Script("""
local head = redis.pcall('GETRANGE', KEYS[1], 0, 55)
if type(head) == 'table' then return {report(''), 0} end
if head == '' then return redis.call('EXISTS', KEYS[1]) == 1 and {report(''), 0} end
local size = redis.call('STRLEN', KEYS[1])
if #head < 56 then return {report(head), size} end
local tokens, fingerprints, reasons = struct.unpack('>HHI4', head, 41)
local before = 56 + tokens + fingerprints + reasons
return {report(redis.call('GETRANGE', KEYS[1], 0, before - 1)), size}
""")
"""No arguments. The time and what comes before meta, the size of the whole; nil where there is no record."""

SWEEP: Final = Script("""
local score = redis.call('ZSCORE', KEYS[2], KEYS[1])
if not score or tonumber(score) > now then return 0 end
local value, r = look()
if r and not (r.state == 'C' and forgettable(r)) then
  store(r)
  return 0
end
remove()
return 1
""")
"""No arguments. 1 where a claim that nobody finished, or what cannot be read, is gone past its retention."""
