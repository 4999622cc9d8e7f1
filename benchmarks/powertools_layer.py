"""A layer of Powertools' that keeps records in memory: as little as one can do, a dict under a lock."""

from __future__ import annotations

import threading

from aws_lambda_powertools.utilities.idempotency import BasePersistenceLayer
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord


class InMemory(BasePersistenceLayer):
    """Nothing else than what its base asks for."""

    def __init__(self) -> None:
        super().__init__()
        self._records: dict[str, DataRecord] = {}
        self._lock = threading.Lock()

    def _get_record(self, idempotency_key: str) -> DataRecord:
        with self._lock:
            found = self._records.get(idempotency_key)
        if found is None:
            raise IdempotencyItemNotFoundError
        return found

    def _put_record(self, data_record: DataRecord) -> None:
        with self._lock:
            old = self._records.setdefault(data_record.idempotency_key, data_record)
        if old is not data_record:
            raise IdempotencyItemAlreadyExistsError(old_data_record=old)

    def _update_record(self, data_record: DataRecord) -> None:
        with self._lock:
            self._records[data_record.idempotency_key] = data_record

    def _delete_record(self, data_record: DataRecord) -> None:
        with self._lock:
            self._records.pop(data_record.idempotency_key, None)
