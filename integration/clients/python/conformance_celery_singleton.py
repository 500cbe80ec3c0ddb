"""celery-singleton: a task that is already queued is not queued again. Its lock holds the id of the queued task, and whoever ends
a task deletes it, whatever it holds. Nothing runs the tasks here; the broker is in memory."""
import importlib.metadata
import math
import sys

import celery
import celery_singleton

import conversation

app = celery.Celery("conformance", broker="memory://")
app.conf.singleton_backend_url = f"redis://127.0.0.1:{sys.argv[1]}/0"
app.conf.singleton_raise_on_duplicate = True


@app.task(base=celery_singleton.Singleton, name="hold")
def hold(name):
    pass


class CelerySingleton:
    version = staticmethod(lambda: importlib.metadata.version("celery-singleton"))

    def key(self, name):
        return hold.generate_lock("hold", task_kwargs={"name": name})

    def acquire(self, name, ttl):
        hold.lock_expiry = math.ceil(ttl / 1000)
        try:
            hold.apply_async(kwargs={"name": name})
        except celery_singleton.DuplicateTaskError:
            return False
        return True

    def release(self, name):
        hold.release_lock(task_kwargs={"name": name})
        return True


conversation.serve(CelerySingleton())
