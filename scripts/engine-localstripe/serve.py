"""localstripe on one port of loopback, with its objects in memory alone.

Its own command listens on every interface, and reads and writes a pickle in the system's temporary
folder: card numbers in a file, and code from whoever can write there.
"""
import sys

from aiohttp import web
from localstripe import resources
from localstripe.server import app

resources.Store.dump_to_disk = lambda store: None
web.run_app(app, host='127.0.0.1', port=int(sys.argv[1]), access_log=None, print=None)
