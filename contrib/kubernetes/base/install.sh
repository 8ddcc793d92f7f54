#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs in the DaemonSet's containers: install.sh plugin|watch|ready|answers.
#   plugin   puts vethguard-cni onto the node
#   watch    copies policies to the node when they change, and the network's configuration while the daemon is ready
#   ready    whether a pod would be guarded now: the plugin's own command STATUS
#   answers  whether the daemon answers at all
set -eu
: "${BIN:=/host/cni/bin}" "${CONF:=/host/cni/conf}" "${PLUGIN:=/usr/libexec/vethguard/vethguard-cni}" "${NODE:=/node}"
: "${POLICIES:=/policies}" "${POLICIES_ON_NODE:=/etc/vethguard/pod-policies}" "${SOCKET:=/run/vethguard/control.sock}" "${PERIOD:=2}"
network=10-vethguard.conflist

# put SOURCE TARGET: nobody ever sees half of a file, and one that is the same is not touched.
put() {
	cmp -s "$1" "$2" && return 0
	cp "$1" "$2.new" && chmod "$3" "$2.new" && mv "$2.new" "$2"
}

# The first plugin of the network's configuration, as a runtime would hand it over.
status() {
	policy=$(sed -n 's/.*"policy": *"\([^"]*\)".*/\1/p' "$NODE/$network")
	printf '{"cniVersion": "1.1.0", "name": "vethguard", "socket": "%s", "policy": "%s", "policyDirectory": "%s"}' \
		"$SOCKET" "$policy" "$POLICIES_ON_NODE" | CNI_COMMAND=STATUS "$PLUGIN"
}

policies() {
	for file in "$POLICIES"/*.yaml; do
		[ ! -f "$file" ] || put "$file" "$POLICIES_ON_NODE/${file##*/}" 0644
	done
	for file in "$POLICIES_ON_NODE"/*.yaml; do
		[ -e "$POLICIES/${file##*/}" ] || rm -f "$file"
	done
}

case ${1-} in
plugin)
	put "$PLUGIN" "$BIN/vethguard-cni" 0755
	;;
watch)
	trap 'rm -f "$CONF/$network"; exit 0' TERM INT
	while :; do
		policies
		if status >/dev/null; then
			put "$NODE/$network" "$CONF/$network" 0644
		else
			rm -f "$CONF/$network"
		fi
		sleep "$PERIOD" & wait $!
	done
	;;
ready)
	status
	;;
answers)
	# 51: nobody answers; anything else is an answer.
	status | grep -q '"code":51' && exit 1 || exit 0
	;;
*)
	echo "usage: install.sh plugin|watch|ready|answers" >&2
	exit 2
	;;
esac
