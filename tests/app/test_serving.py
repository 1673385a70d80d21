"""How the console's sockets are bound."""

import socket

import pytest

from core_console.addresses import Address
from core_console.app import serving
from core_console.ports import Fault


def test_an_answer_in_two_pieces_does_not_wait_for_an_acknowledgement() -> None:
    with serving._bound(Address("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        accepted, _ = listening.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_taken_port_is_a_fault_that_names_it() -> None:
    with serving._bound(Address("127.0.0.1", 0)) as listening:
        address = Address("127.0.0.1", listening.getsockname()[1])
        with pytest.raises(Fault, match=f"{address} cannot be bound"):
            serving._bound(address)
