#!/usr/bin/env python3
"""Has HAProxy write headers of the PROXY protocol and keeps each in a file of its own: proxy_headers.py FOLDER"""

import pathlib
import socket
import subprocess
import sys
import tempfile
import time

CASES = {
    "tcp4.bin": ("127.0.0.1", "send-proxy-v2"),
    "tcp6.bin": ("::1", "send-proxy-v2"),
    "checksum.bin": ("127.0.0.1", "send-proxy-v2 proxy-v2-options crc32c"),
    "unique-id.bin": ("127.0.0.1", "send-proxy-v2 proxy-v2-options unique-id,crc32c"),
    "tls.bin": ("::1", "send-proxy-v2-ssl-cn proxy-v2-options ssl,cert-cn,cert-key,cert-sig,ssl-cipher"),
    "version1.bin": ("127.0.0.1", "send-proxy"),
    "local.bin": (None, "send-proxy-v2 check check-send-proxy inter 100ms"),
}


def header(folder, client, options):
    with socket.create_server((client or "127.0.0.1", 0), family=socket.AF_INET6 if client == "::1" else socket.AF_INET) as free:
        port = free.getsockname()[1]
    sink = socket.socket(socket.AF_UNIX)
    sink.bind(f"{folder}/sink")
    sink.listen()
    sink.settimeout(20)
    config = pathlib.Path(folder, "cfg")
    address = f"[::1]:{port}" if client == "::1" else f"127.0.0.1:{port}"
    config.write_text(
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n unique-id-format %pid-%ts\n"
        f"listen front\n bind {address}\n server sink unix@{folder}/sink {options}\n"
    )
    haproxy = subprocess.Popen(["haproxy", "-db", "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        if client:
            for _ in range(100):
                try:
                    caller = socket.create_connection((client, port))
                    break
                except ConnectionRefusedError:
                    time.sleep(0.05)
            caller.sendall(b"hello")
        accepted, _ = sink.accept()
        accepted.settimeout(2)
        return accepted.recv(65536)
    finally:
        haproxy.kill()
        haproxy.wait()


for name, (client, options) in CASES.items():
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(sys.argv[1], name).write_bytes(header(folder, client, options))
