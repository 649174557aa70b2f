"""Any order of faults between a producer and the leader of its partition."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from support.numbered_batches import Batch, idempotence, may_drain, written
from trionet.client.producer.transactions._sequences import NONE, after, is_newer
from trionet.protocol import error_codes

OUT_OF_ORDER = error_codes.OUT_OF_ORDER_SEQUENCE_NUMBER


class Leader:
    """A leader as Kafka's ProducerStateManager and ProducerAppendInfo are, for one producer."""

    def __init__(self) -> None:
        self.log: list[Batch | None] = []
        self.epoch = NONE
        self.known: list[tuple[int, int, int]] = []

    def append(self, batch: Batch) -> int | None:
        """The offset of the batch; None where it is out of order."""
        epoch, sequence = batch.number
        if epoch == self.epoch:
            for first, offset, count in self.known[-5:]:
                if (first, count) == (sequence, batch.record_count):
                    return offset
        if self.epoch != NONE:
            expected = 0
            if epoch == self.epoch:
                first, _, count = self.known[-1]
                expected = after(first, count)
            if sequence != expected:
                return None
        if epoch != self.epoch:
            self.epoch, self.known = epoch, []
        offset = len(self.log)
        self.log += [batch] * batch.record_count
        self.known.append((sequence, offset, batch.record_count))
        return offset

    def restart(self) -> None:
        """As it does when it was stopped: its snapshot has the last batch."""
        del self.known[:-1]

    def forget(self) -> None:
        self.epoch, self.known = NONE, []


FAULTS = (
    "none",
    "none",
    "refused",
    "refused for good",
    "request lost",
    "response lost",
    "after append",
    "restart",
)


class Course:
    """Batches of one partition on their way to a leader, until all are decided."""

    def __init__(self, data: st.DataObject, faults: tuple[str, ...]) -> None:
        self.state = idempotence()
        self.leader = Leader()
        self.offsets: dict[int, int] = {}
        self.failed: list[Batch] = []
        self.batches = [Batch(record_count=data.draw(st.integers(1, 3))) for _ in range(9)]
        self._data = data
        self._faults = faults
        self._queue = list(self.batches)
        self._drawn = 0

    def run(self) -> None:
        while self._queue:
            self.state.settle()
            for batch in self._drain():
                self._deliver(batch)

    def _drain(self) -> list[Batch]:
        wave: list[Batch] = []
        while self._queue and len(wave) < 5:
            asked = [each for each in self._queue if not self.state.passes_over(each)]
            batch = (asked or self._queue)[0]
            if not may_drain(self.state, batch):
                break
            self.state.assign(batch)
            self._queue.remove(batch)
            wave.append(batch)
        assert wave
        return wave

    def _deliver(self, batch: Batch) -> None:
        fault = self._fault()
        if fault == "restart":
            self.leader.restart()
        elif fault == "forget":
            self.leader.forget()
        elif fault == "others append":
            self.leader.log += [None] * 5
        code, offset = error_codes.NETWORK_EXCEPTION, None
        # Not one that the leader has: refused after that by a changed limit, it leaves no proof for
        # those before it.
        if fault == "refused for good" and not batch.may_be_written:
            self.state.failed(batch)
            self.failed.append(batch)
            return
        if fault == "refused":
            code = error_codes.NOT_ENOUGH_REPLICAS
        elif fault != "request lost":
            offset = self.leader.append(batch)
            code = error_codes.NONE if offset is not None else OUT_OF_ORDER
            if fault == "response lost":
                code = error_codes.NETWORK_EXCEPTION
            elif fault == "after append" and offset is not None:
                code = error_codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        if code == error_codes.NONE:
            assert offset is not None
            self._acknowledged(batch, offset)
        elif self.state.is_written(batch, code):
            self._acknowledged(batch, NONE)
        else:
            assert self.state.can_retry(batch, code, NONE)
            batch.may_be_written |= code not in (error_codes.NOT_ENOUGH_REPLICAS, OUT_OF_ORDER)
            self._put_back(batch)

    def _fault(self) -> str:
        self._drawn += 1
        if self._drawn > 30:  # a time comes when all is well
            return "none"
        return self._data.draw(st.sampled_from(self._faults))

    def _acknowledged(self, batch: Batch, offset: int) -> None:
        for earlier in written(self.state, batch, offset):
            assert isinstance(earlier, Batch)
            self._queue.remove(earlier)
            self.offsets[id(earlier)] = NONE
        self.offsets[id(batch)] = offset

    def _put_back(self, batch: Batch) -> None:
        place = 0
        for other in self._queue:
            if other.base_sequence == NONE or is_newer(other.base_sequence, batch.base_sequence):
                break
            place += 1
        self._queue.insert(place, batch)

    def check_acknowledged(self) -> None:
        for batch in self.batches:
            if any(batch is each for each in self.failed):
                continue
            offset = self.offsets[id(batch)]
            if offset == NONE:
                assert batch in self.leader.log
            else:
                assert batch is self.leader.log[offset]


@settings(max_examples=150)
@given(st.data())
def test_leader_takes_every_batch_once_and_in_order(data: st.DataObject) -> None:
    """D20: whatever is refused, lost, appended in between or forgotten at a restart."""
    course = Course(data, (*FAULTS, "others append"))
    course.run()

    course.check_acknowledged()
    expected = [each for each in course.batches if each not in course.failed]
    records = [batch for batch in expected for _ in range(batch.record_count)]
    assert records == [each for each in course.leader.log if each is not None]


@settings(max_examples=150)
@given(st.data())
def test_batch_is_not_acknowledged_for_another_by_a_leader_that_forgets(
    data: st.DataObject,
) -> None:
    """D20: one that is refused is not written, though the leader accepts those that follow."""
    course = Course(data, (*FAULTS, "forget"))
    course.run()

    course.check_acknowledged()
