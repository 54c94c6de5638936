"""Whatever a connection is, and whatever came before it: the bytes are those that mitmproxy would write."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from mitmproxy import certs, connection
from mitmproxy.io import tnetstring
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.test import tflow

from wirelint.addon.connections import entry_of, snapshot


def _client(**fields: object) -> connection.Client:
    made = connection.Client(peername=("127.0.0.1", 5), sockname=("127.0.0.1", 8080), timestamp_start=7.25)
    vars(made).update(fields)
    return made


def _server(**fields: object) -> connection.Server:
    made = connection.Server(address=("example.com", 443))
    vars(made).update(fields)
    return made


def _certificates() -> list[certs.Cert]:
    return [certs.Cert(certs.create_ca("org", name, 1024)[1]) for name in ("one", "other")]


ONE, OTHER = _certificates()

CONNECTIONS: dict[str, Callable[[], connection.Connection]] = {
    "client": _client,
    "another client": lambda: _client(peername=("10.0.0.7", 61234), timestamp_start=1767225600.125),
    "a client that has gone": lambda: _client(timestamp_end=9.5, state=connection.ConnectionState.CLOSED),
    "a client under IPv6": lambda: _client(peername=("::1", 5, 0, 0), sockname=("::1", 8080, 0, 0)),
    "addresses as lists": lambda: _client(peername=["127.0.0.1", 5]),
    "a time that is whole": lambda: _client(timestamp_start=7),
    "a reverse proxy": lambda: _client(proxy_mode=ProxyMode.parse("reverse:http://127.0.0.1:9")),
    "another reverse proxy": lambda: _client(proxy_mode=ProxyMode.parse("reverse:http://127.0.0.1:10")),
    "names and protocols": lambda: _client(tls=True, sni="example.com", alpn=b"h2", alpn_offers=[b"h2", b"http/1.1"]),
    "other protocols": lambda: _client(tls=True, sni="example.com", alpn=b"h2", alpn_offers=[b"h2"]),
    "of mitmproxy's tests": tflow.tclient_conn,
    "server": _server,
    "a server that was reached": lambda: _server(
        peername=("127.0.0.1", 443), sockname=("127.0.0.1", 9), timestamp_start=1.5, timestamp_tcp_setup=1.75
    ),
    "another server": lambda: _server(address=("example.org", 443)),
    "a server that failed": lambda: _server(error="refused"),
    "a server behind a proxy": lambda: _server(via=("http", ("proxy", 3128))),
    "a server of mitmproxy's tests": tflow.tserver_conn,
    "a server with certificates": lambda: _server(tls=True, certificate_list=[ONE, OTHER], tls_version="TLSv1.3"),
    "a server with another certificate": lambda: _server(tls=True, certificate_list=[OTHER], tls_version="TLSv1.3"),
    "a client that was shown a certificate": lambda: _client(tls=True, mitmcert=ONE, timestamp_tls_setup=8.5),
    "a client that was shown another": lambda: _client(tls=True, mitmcert=OTHER, timestamp_tls_setup=8.5),
    "something of another addon's": lambda: _server(remark="x"),
}


@pytest.mark.parametrize("before", CONNECTIONS)
def test_it_is_what_mitmproxy_writes(before: str) -> None:
    for make in CONNECTIONS.values():
        entry_of("a_conn", CONNECTIONS[before]())
        for _ in range(2):
            made = make()
            entry = entry_of("a_conn", made)
            assert b"%d:%b}" % (len(entry), entry) == tnetstring.dumps({"a_conn": made.get_state()})


def test_a_connection_that_has_changed_since_is_written_anew() -> None:
    live = _client(timestamp_start=7)
    written = set()
    changes: list[dict[str, object]] = [
        {},
        {"timestamp_start": 7.5},
        {"tls": True},
        {"certificate_list": [ONE]},
        {"timestamp_end": 9.5},
    ]
    for fields in changes:
        vars(live).update(fields)
        for _ in range(2):
            entry = entry_of("a_conn", snapshot(live))
            assert b"%d:%b}" % (len(entry), entry) == tnetstring.dumps({"a_conn": live.get_state()})
        written.add(entry)
    assert len(written) == len(changes)


def test_what_mitmproxy_refuses_is_refused() -> None:
    entry_of("a_conn", _client())
    for fields in ({"transport_protocol": "smoke"}, {"id": 5}, {"timestamp_start": None}):
        with pytest.raises(ValueError, match=r"Invalid value|must not be None"):
            entry_of("a_conn", _client(**fields))


def test_a_snapshot_stays_as_it_was() -> None:
    live = _client()
    taken = snapshot(live)
    live.timestamp_end = 4.5
    assert taken.timestamp_end is None
    assert type(taken) is connection.Client
    assert taken == live
