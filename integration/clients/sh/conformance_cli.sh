#!/bin/sh
# What shell scripts do with redis-cli, which is started again for each command. conformance/client_test.go has the verbs.
# Arguments: the port, and more options of redis-cli.
port=$1
shift
release="if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end"
extend="if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) else return 0 end"

cli() { redis-cli -p "$port" $options "$@"; }

# yes answers yes if the reply is the first argument, and no if it is another one that is no error.
yes() {
	case $2 in
	"$1") echo yes ;;
	"" | 0 | 1 | token-*) echo no ;;
	*) echo "error $2" | tr '\n' ' '; echo ;;
	esac
}

options=$*
mine="token-$$-$(date +%s%N)"
while read -r verb name ttl limit; do
	case $verb in
	version) redis-cli --version | sed 's/redis-cli \([0-9.]*\).*/\1/' ;;
	key) echo "$name" ;;
	acquire) yes OK "$(cli SET "$name" "$mine" NX PX "$ttl")" ;;
	wait)
		tries=$((limit / 100 + 1))
		until [ "$(cli SET "$name" "$mine" NX PX "$ttl")" = OK ] || [ $((tries -= 1)) -le 0 ]; do sleep 0.1; done
		yes "$mine" "$(cli GET "$name")"
		;;
	extend) yes 1 "$(cli EVAL "$extend" 1 "$name" "$mine" "$ttl")" ;;
	release) yes 1 "$(cli EVAL "$release" 1 "$name" "$mine")" ;;
	steal) yes 1 "$(cli EVAL "$release" 1 "$name" token-of-somebody-else)" ;;
	held) yes 1 "$(cli EXISTS "$name")" ;;
	mine) yes "$mine" "$(cli GET "$name")" ;;
	esac
done
