"""celery-redbeat: only one beat may run, so it takes a lock at its start and waits for it as long as it takes. All beats of an
application have the same lock, whatever NAME is."""
import importlib.metadata
import sys
import types

import celery
import redbeat.schedulers

import conversation

app = celery.Celery("conformance", broker="memory://")
app.conf.redbeat_redis_url = f"redis://127.0.0.1:{sys.argv[1]}/0"
app.conf.redbeat_redis_options = {}


class RedBeat:
    version = staticmethod(lambda: importlib.metadata.version("celery-redbeat"))

    def key(self, name):
        redbeat.schedulers.ensure_conf(app)
        return app.redbeat_conf.lock_key

    def acquire(self, name, ttl):
        self.scheduler = redbeat.schedulers.RedBeatScheduler(app, lock_timeout=ttl // 1000)
        redbeat.schedulers.acquire_distributed_beat_lock(sender=types.SimpleNamespace(scheduler=self.scheduler))
        return self.scheduler.lock.owned()

    def release(self, name):
        self.scheduler.close()
        return self.scheduler.lock is None


conversation.serve(RedBeat())
