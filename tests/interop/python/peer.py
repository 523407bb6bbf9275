"""A client and a server made of grpcio alone: peer.py client|server FOLDER ...

Messages are bytes as they come, so that no generated code is needed. What happens is written to
standard output, one JSON object a line.
"""

import argparse
import json
import pathlib
import sys
import threading
from concurrent import futures

import grpc


def say(**event):
    print(json.dumps(event), flush=True)


def read(folder, name):
    return pathlib.Path(folder, name).read_bytes()


def client(options):
    pair = {}
    if not options.no_cert:
        pair = {
            "private_key": read(options.folder, "tls.key"),
            "certificate_chain": read(options.folder, "tls.crt"),
        }
    credentials = grpc.ssl_channel_credentials(read(options.folder, "ca.crt"), **pair)
    settings = [("grpc.ssl_target_name_override", options.server_name)]
    with grpc.secure_channel(options.address, credentials, settings) as channel:
        # None: bytes in, bytes out
        method = channel.unary_unary(options.method)
        request = bytes.fromhex(options.message)
        if options.loop:
            return loop(method, request)
        try:
            say(code="OK", answer=method(request, timeout=20).hex())
        except grpc.RpcError as error:
            say(code=error.code().name, details=error.details())


def loop(method, request):
    """Calls until standard input ends; says how many calls went well after each one."""
    ended = threading.Event()
    threading.Thread(target=lambda: sys.stdin.read() or ended.set(), daemon=True).start()
    calls, failures = 0, []
    while not ended.is_set():
        try:
            method(request, timeout=20)
            calls += 1
        except grpc.RpcError as error:
            failures.append(error.details())
        say(calls=calls, failures=failures)


class Echo(grpc.GenericRpcHandler):
    """Answers every unary call with its request."""

    def service(self, _details):
        return grpc.unary_unary_rpc_method_handler(lambda request, _context: request)


def server(options):
    credentials = grpc.ssl_server_credentials(
        [(read(options.folder, "tls.key"), read(options.folder, "tls.crt"))],
        root_certificates=read(options.folder, "ca.crt"),
        require_client_auth=True,
    )
    serving = grpc.server(futures.ThreadPoolExecutor(max_workers=2), handlers=[Echo()])
    port = serving.add_secure_port("127.0.0.1:0", credentials)
    serving.start()
    say(port=port)
    serving.wait_for_termination()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=["client", "server"])
    parser.add_argument("folder", help="holds tls.crt, tls.key and ca.crt")
    parser.add_argument("--address")
    parser.add_argument("--server-name")
    parser.add_argument("--method")
    parser.add_argument("--message", help="the request, in hexadecimal digits")
    parser.add_argument("--no-cert", action="store_true")
    parser.add_argument("--loop", action="store_true")
    options = parser.parse_args()
    {"client": client, "server": server}[options.role](options)


main()
