"""The lock that django-redis adds to Django's cache: redis-py's, under the key that the cache makes of its name. If LIBRARY is
"own", the locks have a cache of their own, with a prefix that no other key has."""
import sys

import conversation
import django
import django_redis
from conformance_redis import RedisPy
from django.conf import settings
from django.core.cache import cache


class DjangoRedis(RedisPy):
    version = staticmethod(lambda: django_redis.__version__)

    def lock(self, name, ttl):
        return cache.lock(name, timeout=ttl / 1000)

    def key(self, name):
        return cache.make_key(name)


settings.configure(CACHES={
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": f"redis://127.0.0.1:{sys.argv[1]}/0",
        "KEY_PREFIX": "lock" if sys.argv[2] == "own" else "",
    },
})
django.setup()
conversation.serve(DjangoRedis(int(sys.argv[1]), replace=False))
