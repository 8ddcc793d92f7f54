#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tries every way out of the sandbox that it runs in, and tells which of them lead out. POSIX sh alone is enough to start
# it; it uses what it finds of the programs in TOOLS, and names the ways that it could not try.
#
# A try over TCP sends a short HTTP request, whatever the port: a server answers it with something, and vethguard with a
# refusal that bears its mark (a field X-Vethguard). A try over UDP or DNS counts as a way out if an answer comes back.
# A query has a name that nobody has asked for before, so no cache can answer it.
#
# Each try lasts at most --timeout seconds and one more, all of them together --limit. Nothing is written to a file.
set -uf
LC_ALL=C
export LC_ALL
TOOLS='curl python3 node bash nc wget dig nslookup ping'
WAYS='tcp tcp6 name udp udp6 dns dns6 icmp icmp6 metadata api proxy socket'
ENGINES='/var/run/docker.sock /run/podman/podman.sock /run/containerd/containerd.sock /run/crio/crio.sock'
# Anycast resolvers, a public time server, and the name that IANA keeps for examples.
tcp='1.1.1.1:443 1.1.1.1:80 8.8.8.8:53 [2606:4700:4700::1111]:443'
name='example.com'
udp='162.159.200.123:123'
dns='1.1.1.1 8.8.8.8 2606:4700:4700::1111'
icmp='1.1.1.1 2606:4700:4700::1111'
metadata='169.254.169.254:80 [fd00:ec2::254]:80 100.100.100.200:80 168.63.129.16:80'
api=
gateway=
without=
seconds=2 limit=60 json=

usage() {
	cat <<'END'
Usage: vethguard probe [OPTIONS] | sh
       sh probe.sh [OPTIONS]

Tries every way out of the sandbox that the script runs in: TCP, UDP, DNS, ICMP, over IPv4 and IPv6, metadata services,
the proxy of the environment, sockets of container engines. Prints a line for each.

Targets, several in one word with spaces between them; an empty word leaves the way out:
      --tcp HOST:PORT...       1.1.1.1:443 1.1.1.1:80 8.8.8.8:53 [2606:4700:4700::1111]:443
      --name NAME              ports 443 and 80 of it, and DNS queries for new names below it; example.com
      --udp HOST:PORT...       servers that answer an NTP query; 162.159.200.123:123
      --dns ADDRESS...         resolvers besides those of /etc/resolv.conf; 1.1.1.1 8.8.8.8 2606:4700:4700::1111
      --icmp ADDRESS...        1.1.1.1 2606:4700:4700::1111
      --metadata HOST:PORT...  169.254.169.254:80 [fd00:ec2::254]:80 100.100.100.200:80 168.63.129.16:80
      --api HOST:PORT...       the provider's own API; none
      --gateway HOST:PORT      an address that has to be reached; none

How:
      --without WAY...         leave out: tcp tcp6 name udp udp6 dns dns6 icmp icmp6 metadata api proxy socket
      --tools NAME...          use only these: curl python3 node bash nc wget dig nslookup ping
      --timeout SECONDS        of each try; 2
      --limit SECONDS          of all of them; 60
      --json                   print one JSON object
  -h, --help                   this text

Exit status: 0 nothing leads out; 1 something does, or the gateway is not reached; 2 wrong usage; 3 nothing that was
tried leads out, but something could not be tried, or is not clear.
END
}

wrong() {
	printf 'probe: %s\n' "$1" >&2
	exit 2
}

# is_plain TEXT: only characters of names, addresses and lists of them. Nothing else gets into commands or JSON.
is_plain() {
	case $1 in
	-* | *' -'* | *[!][A-Za-z0-9._:\ -]*) return 1 ;;
	esac
}

is_number() {
	case $1 in
	'' | 0* | *[!0-9]* | ?????*) return 1 ;;
	esac
}

while [ $# -gt 0 ]; do
	case $1 in
	--json) json=1 ;;
	--help | -h)
		usage
		exit 0
		;;
	--tcp | --name | --udp | --dns | --icmp | --metadata | --api | --gateway | --without | --tools | --timeout | --limit)
		[ $# -ge 2 ] || wrong "$1 needs a value"
		is_plain "$2" || wrong "$1: \"$2\" is not a target; see --help"
		case $1 in
		--tcp) tcp=$2 ;;
		--name) name=$2 ;;
		--udp) udp=$2 ;;
		--dns) dns=$2 ;;
		--icmp) icmp=$2 ;;
		--metadata) metadata=$2 ;;
		--api) api=$2 ;;
		--gateway) gateway=$2 ;;
		--without) without=$2 ;;
		--tools) TOOLS=$2 ;;
		--timeout) seconds=$2 ;;
		--limit) limit=$2 ;;
		esac
		shift
		;;
	*) wrong "there is no option \"$1\"; see --help" ;;
	esac
	shift
done
is_number "$seconds" && is_number "$limit" || wrong "--timeout and --limit are seconds, from 1 to 9999"
for way in $without; do
	case " $WAYS " in
	*" $way "*) ;;
	*) wrong "--without: there is no way \"$way\"; there are $WAYS" ;;
	esac
done
for target in $tcp $udp $metadata $api $gateway; do
	case $target in
	*[!:]:[0-9]*) ;;
	*) wrong "\"$target\" has no port: write HOST:PORT" ;;
	esac
done

# --- programs ---

have() {
	command -v "$1" >/dev/null 2>&1
}

uses() {
	case " $TOOLS " in
	*" $1 "*) have "$1" ;;
	*) return 1 ;;
	esac
}

# within COMMAND...: ends it after its time. Without timeout and sleep it keeps only the time that it has been told.
patience=$((seconds + 1))
if have timeout && timeout 1 true 2>/dev/null; then
	within() { timeout "$patience" "$@"; }
elif have sleep; then
	within() {
		{ "$@" <&3 3<&- & } 3<&0
		child=$!
		(
			sleep "$patience"
			kill "$child"
		) >/dev/null 2>&1 3<&- &
		watch=$!
		wait "$child"
		rc=$?
		kill "$watch" 2>/dev/null
		return $rc
	}
else
	within() { "$@"; }
fi

# starts COMMAND...: a program that prints "begun" first; `said` is the rest. Returns 0, 7 if it failed or was ended, 8 if it
# was ended before it began: it has tried nothing.
starts() {
	said=$(within "$@" 2>/dev/null)
	rc=$?
	case $said in
	begun*) said=${said#begun} said=${said#"
"} ;;
	*) said= && return 8 ;;
	esac
	[ $rc -eq 0 ] || return 7
}

# tells COMMAND...: starts(), of a program that prints "connected" when it is. A connected one that was ended has found
# a server.
tells() {
	starts "$@"
	rc=$?
	case $said in
	connected*) said=${said#connected} ;;
	*) [ $rc -eq 8 ] && return 8 || return 7 ;;
	esac
}

# unbegun WAY TARGET
unbegun() {
	row untried "$1" "$2" "$by" "the program did not begin in time; raise --timeout"
}

now() {
	if have date; then date +%s; else echo 0; fi
}

# Tries of the proxy go through it; everything else has to be direct.
by_proxy=${HTTPS_PROXY:-${https_proxy:-${ALL_PROXY:-${all_proxy:-}}}}
unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy NO_PROXY no_proxy

# --- results ---

begun=$(now)
leaks=0 doubts=0 tries=0 rows=

# row RESULT WAY TARGET BY DETAIL
row() {
	tries=$((tries + 1))
	case $1 in
	leaks | missed) leaks=$((leaks + 1)) ;;
	unclear | untried) doubts=$((doubts + 1)) ;;
	esac
	if [ -z "$json" ]; then
		printf '%-8s %-9s %-28s %s\n' "$1" "$2" "$3" "${4:+$4: }$5"
	else
		rows="$rows${rows:+,
  }{\"result\": \"$1\", \"way\": \"$2\", \"target\": \"$3\", \"by\": \"$4\", \"detail\": \"$5\"}"
	fi
}

wanted() {
	case " $without " in
	*" $1 "*) return 1 ;;
	esac
}

# in_time WAY TARGET: false if all time is used up.
in_time() {
	[ $(($(now) - begun)) -lt "$limit" ] && return 0
	row untried "$1" "$2" "" "no time was left; raise --limit"
	return 1
}

# Interfaces other than the loopback. If /proc is hidden they are unknown, which counts as present.
links=unknown links6=unknown
if [ -r /proc/net/dev ]; then
	links=
	while read -r word _; do
		case $word in
		lo: | lo:* | Inter-* | face) ;;
		*:*) links="$links ${word%%:*}" ;;
		esac
	done </proc/net/dev
	links6=
	[ ! -r /proc/net/if_inet6 ] || while read -r _ _ _ _ _ word; do
		[ "$word" = lo ] || links6="$links6 $word"
	done </proc/net/if_inet6
fi

# has_link WAY TARGET: false, and a row, if nothing but the loopback is there.
has_link() {
	case $2 in
	*:*:*) [ -n "$links6" ] && return 0 ;;
	*) [ -n "$links" ] && return 0 ;;
	esac
	row closed "$1" "$2" sh "no interface has an address of this family"
	return 1
}

# --- TCP ---

SAID='HEAD / HTTP/1.0\r\nHost: probe.invalid\r\nConnection: close\r\n\r\n'
PYTHON_TCP='
import socket, sys
host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
print("begun", flush=True)
try:
    s = socket.create_connection((host, port), seconds)
except OSError:
    sys.exit(7)
print("connected", flush=True)
try:
    s.settimeout(seconds)
    s.sendall(b"HEAD / HTTP/1.0\r\nHost: probe.invalid\r\nConnection: close\r\n\r\n")
    print(s.recv(4096).decode("latin-1").replace("\0", "?"))
except OSError:
    pass
'
NODE_TCP='
const [host, port, seconds] = process.argv.slice(1);
console.log("begun");
const s = require("net").connect({host, port: Number(port)});
let connected = false;
const end = () => process.exit(connected ? 0 : 7);
s.on("connect", () => { connected = true; console.log("connected"); s.write("HEAD / HTTP/1.0\r\nHost: probe.invalid\r\nConnection: close\r\n\r\n"); });
s.on("data", (data) => { console.log(data.toString("latin1").replace(/\0/g, "?")); end(); });
s.on("error", end); s.on("close", end); setTimeout(end, 1000 * seconds);
'
# shellcheck disable=SC2016 # it is bash that expands this
BASH_TCP='echo begun
exec 3<>"/dev/tcp/$0/$1" || exit 7
echo connected
printf "$3" >&3
while IFS= read -r -t "$2" line <&3; do printf "%s\n" "$line"; done; exit 0'

# ask HOST PORT: `said` is what came back, `by` the program. Returns 0 connected, 7 not, 8 not begun; 9: no program can do it.
ask() {
	case $1 in
	*:*) url="http://[$1]:$2/" ;;
	*) url="http://$1:$2/" ;;
	esac
	if uses curl; then
		by=curl
		said=$(within curl -q -g -s -I -m "$seconds" --noproxy '*' -w 'connected in %{time_connect}\n' "$url" 2>/dev/null)
		# A connection that took no time was none.
		case $said in
		*'connected in 0.000000'*) said= && return 7 ;;
		esac
		said=${said%connected in*}
	elif uses python3; then
		by=python3
		tells python3 -c "$PYTHON_TCP" "$1" "$2" "$seconds"
	elif uses node; then
		by=node
		tells node -e "$NODE_TCP" "$1" "$2" "$seconds"
	elif uses bash; then
		by=bash
		tells bash -c "$BASH_TCP" "$1" "$2" "$seconds" "$SAID"
	elif uses nc; then
		by=nc
		said=$(printf "$SAID" | within nc -w "$seconds" "$1" "$2" 2>/dev/null) || [ -n "$said" ] || return 7
	elif uses wget; then
		by=wget
		said=$(within wget -S -O /dev/null -T "$seconds" -t 1 "$url" 2>&1)
		case $said in
		*'HTTP/1.'*) ;;
		*'connected.'* | *'error getting response'*) said= ;;
		*) said= && return 7 ;;
		esac
	else
		by=
		return 9
	fi
}

# judge WAY TARGET: a row for what ask() has found.
judge() {
	case $said in
	*[Vv]ethguard* | *"Not allowed by the sandbox's network policy"*) row refused "$1" "$2" "$by" "vethguard answered with a refusal" ;;
	'') row unclear "$1" "$2" "$by" "a connection was accepted, nothing answered" ;;
	*) row leaks "$1" "$2" "$by" "a server answered" ;;
	esac
}

# try_tcp WAY HOST:PORT
try_tcp() {
	host=${2%:*} port=${2##*:}
	host=${host#[} host=${host%]}
	in_time "$1" "$2" && has_link "$1" "$host" || return 0
	ask "$host" "$port"
	case $? in
	0) judge "$1" "$2" ;;
	8) unbegun "$1" "$2" ;;
	9) row untried "$1" "$2" "" "none of curl, python3, node, bash, nc, wget is here" ;;
	*) row closed "$1" "$2" "$by" "no connection" ;;
	esac
}

# --- UDP ---

PYTHON_UDP='
import socket, sys
host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
print("begun", flush=True)
try:
    family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    s = socket.socket(family, kind)
    s.settimeout(seconds)
    s.connect(address)
    s.send(b"\x23" + bytes(47))
    s.recv(1024)
except OSError:
    sys.exit(7)
'
NODE_UDP='
const [host, port, seconds] = process.argv.slice(1);
console.log("begun");
const s = require("dgram").createSocket(host.includes(":") ? "udp6" : "udp4");
s.on("message", () => process.exit(0)); s.on("error", () => process.exit(7));
s.send(Buffer.concat([Buffer.from([0x23]), Buffer.alloc(47)]), Number(port), host, (error) => { if (error) process.exit(7); });
setTimeout(() => process.exit(7), 1000 * seconds);
'
ZEROS='\000\000\000\000\000\000\000\000\000\000\000'
NTP="\\043$ZEROS$ZEROS$ZEROS$ZEROS\\000\\000\\000"
# shellcheck disable=SC2016
BASH_UDP='echo begun
exec 3<>"/dev/udp/$0/$1" || exit 7
printf "$3" >&3
IFS= read -r -t "$2" -n 1 -d "" line <&3'

# That of busybox may have none.
nc_has_udp() {
	case $(nc -h 2>&1) in
	*[!a-z]-u[!a-z]*) ;;
	*) return 1 ;;
	esac
}

# try_udp WAY HOST:PORT
try_udp() {
	host=${2%:*} port=${2##*:}
	host=${host#[} host=${host%]}
	in_time "$1" "$2" && has_link "$1" "$host" || return 0
	if uses python3; then
		by=python3
		starts python3 -c "$PYTHON_UDP" "$host" "$port" "$seconds"
	elif uses node; then
		by=node
		starts node -e "$NODE_UDP" "$host" "$port" "$seconds"
	elif uses bash; then
		by=bash
		starts bash -c "$BASH_UDP" "$host" "$port" "$seconds" "$NTP"
	elif uses nc && have wc && nc_has_udp; then
		by=nc
		count=$(printf "$NTP" | within nc -u -w "$seconds" "$host" "$port" 2>/dev/null | wc -c)
		[ "$count" -gt 0 ]
	else
		row untried "$1" "$2" "" "none of python3, node, bash, nc is here"
		return
	fi
	case $? in
	0) row leaks "$1" "$2" "$by" "a datagram was answered" ;;
	8) unbegun "$1" "$2" ;;
	*) row closed "$1" "$2" "$by" "no answer" ;;
	esac
}

# --- DNS ---

# It prints "CODE ADDRESS..." of the answer.
PYTHON_DNS='
import os, socket, struct, sys
server, name, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
print("begun", flush=True)
question = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0\0\1\0\1"
number = os.urandom(2)
try:
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(seconds)
    s.connect((server, 53))
    s.send(number + b"\1\0\0\1\0\0\0\0\0\0" + question)
    data = s.recv(4096)
except OSError:
    sys.exit(7)
if data[:2] != number or len(data) < 12 + len(question):
    sys.exit(7)
words, at = [], 12 + len(question)
for _ in range(struct.unpack(">H", data[6:8])[0]):
    while at < len(data) and data[at] not in (0,) and data[at] < 192:
        at += 1 + data[at]
    at += 2 if at < len(data) and data[at] >= 192 else 1
    if at + 10 > len(data):
        break
    kind, _, _, size = struct.unpack(">HHIH", data[at:at + 10])
    at += 10 + size
    if kind == 1 and size == 4 and at <= len(data):
        words.append(socket.inet_ntoa(data[at - 4:at]))
print({0: "NOERROR", 2: "SERVFAIL", 3: "NXDOMAIN", 5: "REFUSED"}.get(data[3] & 15, "OTHER"), *words)
'
NODE_DNS='
const [server, name, seconds] = process.argv.slice(1);
console.log("begun");
const r = new (require("dns").Resolver)({timeout: 1000 * seconds, tries: 1});
r.setServers([server.includes(":") ? "[" + server + "]" : server]);
setTimeout(() => process.exit(7), 1000 * seconds + 500).unref();
r.resolve4(name, (error, found) => {
  const words = {ENOTFOUND: "NXDOMAIN", ENODATA: "NOERROR", ESERVFAIL: "SERVFAIL", EREFUSED: "REFUSED"};
  if (error && !words[error.code]) process.exit(7);
  console.log(error ? words[error.code] : ["NOERROR", ...found].join(" "));
});
'

# query SERVER NAME: `said` is "CODE ADDRESS...". Returns 7 without an answer, 8: not begun, 9: no program can do it.
query() {
	if uses dig; then
		by=dig
		said=$(within dig +time="$seconds" +tries=1 +noall +comments +answer "@$1" "$2" A 2>/dev/null)
		case $said in
		*'status: '*) ;;
		*) return 7 ;;
		esac
		code=${said#*status: }
		found=${said##*IN*A*[!0-9.]}
		[ "$found" = "$said" ] && found=
		said="${code%%,*} $found"
	elif uses python3; then
		by=python3
		starts python3 -c "$PYTHON_DNS" "$1" "$2" "$seconds"
	elif uses node; then
		by=node
		starts node -e "$NODE_DNS" "$1" "$2" "$seconds"
	elif uses nslookup; then
		by=nslookup
		said=$(within nslookup "$2" "$1" 2>&1)
		case $said in
		*NXDOMAIN* | *"can't find"*"No answer"*) said=NXDOMAIN ;;
		*REFUSED*) said=REFUSED ;;
		*SERVFAIL*) said=SERVFAIL ;;
		*Name:*Address*) said="NOERROR ${said##*Address*: }" ;;
		*) return 7 ;;
		esac
	else
		by=
		return 9
	fi
}

# try_dns WAY ADDRESS
try_dns() {
	in_time "$1" "$2" || return 0
	case $2 in
	127.* | ::1) ;; # a resolver in the sandbox, which may forward
	*) has_link "$1" "$2" || return 0 ;;
	esac
	query "$2" "p$$-$(now)-$tries.$name"
	case $? in
	7)
		row closed "$1" "$2" "$by" "no answer"
		return
		;;
	8)
		unbegun "$1" "$2"
		return
		;;
	9)
		row untried "$1" "$2" "" "none of dig, python3, node, nslookup is here"
		return
		;;
	esac
	case $said in
	'NOERROR 198.18.'* | 'NOERROR 198.19.'*) row refused "$1" "$2" "$by" "vethguard answered with an address of its own" ;;
	REFUSED*) row closed "$1" "$2" "$by" "the query was refused" ;;
	NOERROR* | NXDOMAIN*) row leaks "$1" "$2" "$by" "a query for a new name was answered" ;;
	*) row unclear "$1" "$2" "$by" "the resolver failed, and may have asked others" ;;
	esac
}

# --- ICMP ---

PYTHON_ICMP='
import socket, struct, sys, time
host, seconds = sys.argv[1], float(sys.argv[2])
six = ":" in host
family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if six else (socket.AF_INET, socket.IPPROTO_ICMP)
s = None
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try:
        s = socket.socket(family, kind, protocol)
        break
    except OSError:
        pass
if s is None:
    sys.exit(9)
body = b"vethguard"
head = struct.pack(">BBHHH", 128 if six else 8, 0, 0, 7, 1)
total = sum(struct.unpack(">%dH" % ((len(head) + 10) // 2), head + body + b"\0"))
total = (total >> 16) + (total & 0xffff)
head = head[:2] + struct.pack(">H", ~(total + (total >> 16)) & 0xffff) + head[4:]
try:
    s.sendto(head + body, (host, 0))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        s.settimeout(max(0.01, end - time.monotonic()))
        data, address = s.recvfrom(1024)
        at = (data[0] & 15) * 4 if kind == socket.SOCK_RAW and not six else 0
        if address[0] == host and data[at] == (129 if six else 0) and data.endswith(body):
            sys.exit(0)
except OSError:
    pass
sys.exit(7)
'

# try_icmp WAY ADDRESS
try_icmp() {
	in_time "$1" "$2" && has_link "$1" "$2" || return 0
	rc=9 by=
	if uses ping; then
		by=ping
		within ping -c 1 -W "$seconds" "$2" >/dev/null 2>&1
		rc=$?
		[ $rc -eq 0 ] || [ "${2#*:}" = "$2" ] || ! have ping6 || { within ping6 -c 1 -W "$seconds" "$2" >/dev/null 2>&1; rc=$?; }
	fi
	# A ping without the right to send says nothing of the network.
	if [ $rc -ne 0 ] && uses python3; then
		by=python3
		within python3 -c "$PYTHON_ICMP" "$2" "$seconds" 2>/dev/null
		rc=$?
	fi
	case $rc in
	0) row leaks "$1" "$2" "$by" "an echo came back" ;;
	9) row untried "$1" "$2" "$by" "neither ping nor the right to send ICMP is here" ;;
	*) row closed "$1" "$2" "$by" "no echo" ;;
	esac
}

# --- the rest ---

# The proxy that the variables name takes what the policy allows; a name that the policy does not allow is a leak.
try_proxy() {
	in_time proxy "$name:80" || return 0
	if [ -z "$by_proxy" ]; then
		return
	elif uses curl; then
		by=curl
		# A private certificate of the proxy does not matter here, only what it lets through.
		said=$(within curl -q -s -I -m "$seconds" --proxy-insecure -x "$by_proxy" "http://$name/" 2>/dev/null)
		case $said in
		*[Vv]ethguard* | *' 407 '*) row refused proxy "$name:80" curl "the proxy refused it" ;;
		'') row closed proxy "$name:80" curl "nothing came back" ;;
		*) row leaks proxy "$name:80" curl "the proxy of the environment let it pass" ;;
		esac
	else
		row untried proxy "$name:80" "" "curl is not here"
	fi
}

try_sockets() {
	for path in $ENGINES; do
		if [ -S "$path" ] && [ -w "$path" ]; then
			row leaks socket "$path" sh "whoever may use an engine leaves the sandbox"
		fi
	done
}

try_gateway() {
	host=${gateway%:*} port=${gateway##*:}
	host=${host#[} host=${host%]}
	in_time gateway "$gateway" || return 0
	ask "$host" "$port"
	case $? in
	0) row reached gateway "$gateway" "$by" "as it has to be" ;;
	8) unbegun gateway "$gateway" ;;
	9) row untried gateway "$gateway" "" "none of curl, python3, node, bash, nc, wget is here" ;;
	*) row missed gateway "$gateway" "$by" "no connection" ;;
	esac
}

resolvers() {
	[ ! -r /etc/resolv.conf ] || while read -r word address _; do
		[ "$word" = nameserver ] && is_plain "$address" && printf '%s ' "$address"
	done </etc/resolv.conf
}

# each WAY COMMAND TARGET...: the command for each target, with the way of the target's family.
each() {
	kind=$1 command=$2
	shift 2
	for target; do
		case $kind:$target in
		metadata:* | api:*) way=$kind ;;
		*:*:*:*) way=${kind}6 ;;
		*) way=$kind ;;
		esac
		wanted "$way" && $command "$way" "$target"
	done
}

[ -z "$gateway" ] || try_gateway
each tcp try_tcp $tcp
each metadata try_tcp $metadata
each api try_tcp $api
if [ -n "$name" ]; then
	wanted name && try_tcp name "$name:443" && try_tcp name "$name:80"
	dns="$(resolvers)$dns"
	each dns try_dns $dns
	wanted proxy && try_proxy
fi
each udp try_udp $udp
each icmp try_icmp $icmp
wanted socket && try_sockets

if [ $leaks -gt 0 ]; then
	verdict=leaks rc=1
elif [ $doubts -gt 0 ]; then
	verdict=unclear rc=3
else
	verdict=closed rc=0
fi
if [ -n "$json" ]; then
	printf '{"verdict": "%s", "leaks": %s, "unclear": %s, "tries": [\n  %s\n]}\n' $verdict $leaks $doubts "$rows"
else
	printf 'probe: %s: %s tries, %s lead out, %s unclear or untried\n' $verdict $tries $leaks $doubts
fi
exit $rc
