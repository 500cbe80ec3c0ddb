"""How a library's program talks with the suite; conformance/client_test.go has the verbs.

A program's class has a method for each verb, which returns True for yes, False for no, or the answer's own words. A verb
without a method is one that the library has no means for.
"""
import asyncio
import os
import sys
import traceback


def over_tls():
    """The options of a redis-py client that the suite wants to use TLS and a password."""
    if "REDIS_TLS_CA" not in os.environ:
        return {}
    return dict(ssl=True, ssl_ca_certs=os.environ["REDIS_TLS_CA"], password=os.environ["REDIS_PASSWORD"])


def serve(library):
    """Answers with the methods of library until the input ends."""
    for line in sys.stdin:
        try:
            say(ask(library, line))
        except Exception as error:
            complain(error)


async def serve_async(library):
    """Like serve, for methods that are coroutines. Between the lines the library's own tasks go on."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            answer = ask(library, line)
            say(await answer if asyncio.iscoroutine(answer) else answer)
        except Exception as error:
            complain(error)


def ask(library, line):
    verb, *words = line.split()
    method = getattr(library, verb, None)
    return "unsupported" if method is None else method(*[int(word) if word.isdigit() else word for word in words])


def say(answer):
    print({True: "yes", False: "no"}.get(answer, answer), flush=True)


def complain(error):
    traceback.print_exc()
    say("error " + " ".join(f"{type(error).__name__}: {error}".split()))
