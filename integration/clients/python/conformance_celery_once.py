"""celery-once: a task that is already queued is not queued again. Its lock is redis-py's, but whoever ends the task deletes
it, whatever it holds. Nothing runs the tasks here; the broker is in memory."""
import importlib.metadata
import math
import sys

import celery
import celery_once

import conversation

app = celery.Celery("conformance", broker="memory://")
app.conf.ONCE = {
    "backend": "celery_once.backends.Redis",
    "settings": {"url": f"redis://127.0.0.1:{sys.argv[1]}/0"},
}


@app.task(base=celery_once.QueueOnce, name="hold")
def hold(name):
    pass


class CeleryOnce:
    version = staticmethod(lambda: importlib.metadata.version("celery-once"))

    def key(self, name):
        return hold.get_key(kwargs={"name": name})

    def acquire(self, name, ttl):
        return self.queue(name, ttl, blocking=False)

    def wait(self, name, ttl, limit):
        return self.queue(name, ttl, blocking=True, blocking_timeout=limit / 1000)

    def queue(self, name, ttl, **settings):
        app.conf.ONCE["settings"].update(settings)
        try:
            hold.apply_async(kwargs={"name": name}, once={"timeout": math.ceil(ttl / 1000)})
        except celery_once.AlreadyQueued:
            return False
        return True

    def release(self, name):
        return hold.once_backend.clear_lock(self.key(name)) == 1


conversation.serve(CeleryOnce())
