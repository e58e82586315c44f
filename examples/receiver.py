"""Receives webhooks of the payment service. SECRET is what `payments webhooks create` or `listen --print-secret` shows."""
import base64, hashlib, hmac, http.server, json, os, time
key = base64.b64decode(os.environ['SECRET'].removeprefix('whsec_'))
revisions = {}  # in your database: the last revision of each payment
class Receiver(http.server.BaseHTTPRequestHandler):
    timeout = 20  # a sender that holds its body back keeps its own thread alone, and not for ever
    def is_signed(self, body):
        given = {name: self.headers.get(f'webhook-{name}', '') for name in ('id', 'timestamp', 'signature')}
        signed = f"{given['id']}.{given['timestamp']}.".encode() + body
        own = 'v1,' + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        good = any(hmac.compare_digest(own.encode(), one.encode()) for one in given['signature'].split(' '))
        return good and abs(time.time() - int(given['timestamp'])) <= 300
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get('content-length', 0)))
        good = self.is_signed(body)
        message = json.loads(body) if good else {'data': {}}
        payment, revision = message['data'].get('payment'), message['data'].get('revision')
        if payment and revision > revisions.get(payment['paymentId'], -1):
            revisions[payment['paymentId']] = revision
            print(message['type'], payment['paymentId'], payment['status'], flush=True)
        self.send_response(204 if good else 401); self.end_headers()
http.server.ThreadingHTTPServer(('', int(os.environ.get('PORT', 3000))), Receiver).serve_forever()
