"""A service that takes a second to load its model, and squares numbers then."""
import http.server
import os
import socket
import time

SERVING = time.monotonic() + 1


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ready = time.monotonic() >= SERVING
        self.send_response(200 if ready else 503)
        self.end_headers()
        if ready:
            number = self.path.rsplit("/", 1)[-1]
            self.wfile.write(str(int(number) ** 2).encode() if number.isdigit() else b"fine")

    def log_message(self, format, *args):  # not a line for every request
        pass


class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):  # Shoal holds the port, and lets those bind it who ask like this
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


server = Server(("127.0.0.1", int(os.environ["SHOAL_PORT_HTTP"])), Handler)
print("ready")
server.serve_forever()
