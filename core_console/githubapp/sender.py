"""One changing call to GitHub: sent, and after an ambiguous answer never sent again.

Owns the loop around the rules of `judge`. It must never raise for an answer and never send twice
what may have been accepted.
"""

from msgspec import structs

from core_console.githubapp.judge import TRIES_MAX, Errand, History, Judgement, Move, judge, settle
from core_console.githubapp.limits import Pace
from core_console.githubapp.tokens import Tokens
from core_console.githubapp.transport import NoAnswer, NotSent, Transport
from core_console.model.run import Call
from core_console.ports import CallOutcome, Clock, Fault, Objection

# A mint that failed for a moment is tried again after this; nothing was sent yet.
_MINT_PAUSE_S = 2.0


class Sender:
    """Sends dispatches and comments with the App's token, a second apart."""

    def __init__(self, transport: Transport, tokens: Tokens, clock: Clock) -> None:
        self._transport = transport
        self._tokens = tokens
        self._clock = clock
        self._pace = Pace(clock)

    async def post(
        self, url: str, body: bytes, errand: Errand, deadline: float, objection: Objection
    ) -> CallOutcome:
        """Post `body` and return what became of it; nothing is sent after `deadline`.

        `deadline` is in the clock's monotonic seconds. `objection` is asked right before each
        sending: a token, a turn or a limit may have been waited for since the caller looked.
        """
        history = History()
        while True:
            try:
                token = await self._token(deadline)
            except Fault as fault:
                return CallOutcome(Call.REFUSED, f"not sent: {fault.message}")
            if not await self._pace.turn(deadline):
                return CallOutcome(Call.REFUSED, "not sent: its turn would have come too late")
            if why := await objection():
                return CallOutcome(Call.REFUSED, f"not sent: {why}")
            left_s = deadline - self._clock.monotonic()
            found = await self._send(url, body, errand, token)
            move = settle(found, structs.replace(history, left_s=left_s))
            match move.move:
                case Move.MINT_AGAIN:
                    self._tokens.forget(token)
                    history = structs.replace(history, minted_again=True)
                case Move.WAIT:
                    await self._clock.sleep(move.wait_s)
                    history = structs.replace(history, limited=history.limited + 1)
                case Move.ACCEPTED | Move.REFUSED | Move.UNKNOWN:
                    return CallOutcome(Call(move.move), move.detail)

    async def _send(self, url: str, body: bytes, errand: Errand, token: str) -> Judgement:
        try:
            answer = await self._transport.send("POST", url, bearer=token, body=body)
        except NotSent:
            return Judgement(Move.REFUSED, "not sent: GitHub could not be reached")
        except NoAnswer:
            return Judgement(Move.UNKNOWN, errand.unknown)
        return judge(answer, errand, self._clock.now())

    async def _token(self, deadline: float) -> str:
        """Return a token, trying again while that may help and ends before `deadline`.

        Raises:
            Fault: there is none.
        """
        for _ in range(TRIES_MAX - 1):
            try:
                return await self._tokens.get()
            except Fault as fault:
                pause_s = fault.retry_after_s or _MINT_PAUSE_S
                if not fault.retryable or self._clock.monotonic() + pause_s > deadline:
                    raise
            await self._clock.sleep(pause_s)
        return await self._tokens.get()
