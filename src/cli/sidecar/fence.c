/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting the fence: the rules first, then routes for the synthetic addresses, so that a program
 * can reach them whatever routes the namespace has. The routes make them local addresses: without
 * the rules the packets end there.
 *
 * Then it is verified, in this order: the rules as the kernel has them; that this process, which is
 * not the guard's user, gets nothing out; and, by a child that becomes the guard's user (where this
 * process may do that), that the guard gets what it needs.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/sidecar/sidecar.h"
#include "vethguard/base/log.h"
#include "vethguard/netlink/netlink.h"

#define NOBODY_PORT 9 /* discard */
#define NO_EGRESS "what packet sockets send (CAP_NET_RAW) is not stopped"

static int add_routes(const struct sidecar_options *o, struct failure *failure)
{
	const struct ip_prefix *pools[] = {&o->fence.synthetic4, &o->fence.synthetic6};
	struct netlink *nl;
	int rc = netlink_open(&nl);

	if (rc)
		return failure_set(failure, rc, "routes cannot be set");
	rc = netlink_link_up(nl, "lo");
	for (size_t i = 0; rc == 0 && i < 2; i++) {
		rc = netlink_route_to_loopback(nl, &pools[i]->base, pools[i]->bits);
		if (i == 1 && rc) { /* a namespace without IPv6 has nothing to route */
			log_info("no route for synthetic IPv6 addresses: %s", strerror(-rc));
			rc = 0;
		}
	}
	netlink_close(nl);
	return rc ? failure_set(failure, rc, "a route for the synthetic addresses") : 0;
}

/* Addresses that are never used (RFC 5737, RFC 3849). Returns true if a datagram left. */
static bool gets_out(int family)
{
	struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(NOBODY_PORT)};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(NOBODY_PORT)};
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ssize_t n;

	if (fd < 0)
		return false;
	to4.sin_addr.s_addr = htonl(0xc0000201);
	memcpy(to6.sin6_addr.s6_addr, "\x20\x01\x0d\xb8", 4);
	n = family == AF_INET ? sendto(fd, "", 1, 0, (struct sockaddr *)&to4, sizeof(to4))
	                      : sendto(fd, "", 1, 0, (struct sockaddr *)&to6, sizeof(to6));
	close(fd);
	return n >= 0;
}

/* Returns 0; 1: the guard's user does not pass; 2: unknown, because this process may not become
 * that user, or a guard has its ports already. */
static int try_as_guard(const struct fence_shared_spec *spec)
{
	struct failure failure;
	int status, rc;
	pid_t pid = fork();

	if (pid == 0) {
		if (setresgid(spec->uid, spec->uid, spec->uid) != 0 ||
		        setresuid(spec->uid, spec->uid, spec->uid) != 0)
			_exit(2);
		rc = sidecar_witness(spec, &failure);
		_exit(rc == 0 ? 0 : rc == -EADDRINUSE ? 2 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

static int verify(const struct fence_shared_spec *spec, bool is_check, struct failure *failure)
{
	int rc = fence_shared_check(spec);

	if (rc == -ESTALE && spec->device_count &&
	        is_check) { /* the fence was set on a kernel without that hook */
		struct fence_shared_spec less = *spec;

		less.device_count = 0;
		rc = fence_shared_check(&less);
	}
	if (rc == -ESTALE)
		return failure_set(failure, 0,
		        "the fence is not in force as these options and the configuration say");
	if (rc)
		return failure_set(failure, rc, "the fence cannot be read back");
	if (gets_out(AF_INET) || gets_out(AF_INET6))
		return failure_set(failure, 0,
		        "the fence is set, but a datagram of another user left all the same: does "
		        "another table of nftables bypass it?");
	return 0;
}

static int explain_set(int rc, struct failure *failure)
{
	if (rc == -EPERM)
		return failure_set(failure, rc,
		        "the fence cannot be set: this container needs CAP_NET_ADMIN (and no other "
		        "container of the group may have it)");
	if (rc == -ENOENT || rc == -EOPNOTSUPP || rc == -EPROTONOSUPPORT)
		return failure_set(failure, rc,
		        "the fence cannot be set: this kernel lacks a part of nftables (nft_redir, "
		        "nft_nat, nft_ct, nft_fib_inet, nft_log, nft_reject_inet)");
	return failure_set(failure, rc, "the fence cannot be set");
}

/* Lists all devices except lo. Leaves the list empty if there are too many, or they cannot be read.
 */
static void find_devices(struct fence_shared_spec *spec)
{
	struct if_nameindex *all = if_nameindex();
	size_t n = 0;

	spec->device_count = 0;
	for (size_t i = 0; all && all[i].if_name && n <= FENCE_SHARED_DEVICES_MAX; i++) {
		if (strcmp(all[i].if_name, "lo") == 0)
			continue;
		if (n < FENCE_SHARED_DEVICES_MAX)
			snprintf(spec->devices[n], IFNAMSIZ, "%s", all[i].if_name);
		n++;
	}
	if (all)
		if_freenameindex(all);
	if (n <= FENCE_SHARED_DEVICES_MAX)
		spec->device_count = n;
	else
		log_warn("more than %d network devices: " NO_EGRESS, FENCE_SHARED_DEVICES_MAX);
}

static int set_fence(struct fence_shared_spec *spec, struct failure *failure)
{
	int rc;

	find_devices(spec);
	rc = fence_shared_set(spec);
	if (rc && rc != -EPERM && spec->device_count) {
		size_t count = spec->device_count;

		spec->device_count = 0;
		rc = fence_shared_set(spec);
		if (rc == 0)
			log_warn("this kernel has no egress hook: " NO_EGRESS);
		else
			spec->device_count = count;
	}
	if (rc && rc != -EPERM && spec->cgroup) { /* no nft_socket, or no cgroups there */
		spec->cgroup = spec->cgroup_level = 0;
		rc = fence_shared_set(spec);
	}
	return rc ? explain_set(rc, failure) : 0;
}

/* Sets the fence with the guard's cgroup, if the guard can then pass; older kernels count a
 * cgroup's depth differently in a cgroup namespace. */
static int set_and_try(struct fence_shared_spec *spec, struct failure *failure)
{
	int rc = set_fence(spec, failure), tried = rc ? 0 : try_as_guard(spec);

	if (rc == 0 && tried == 1 && spec->cgroup) {
		spec->cgroup = spec->cgroup_level = 0;
		rc = set_fence(spec, failure);
		tried = rc ? 0 : try_as_guard(spec);
	}
	if (rc == 0 && tried == 1)
		rc = failure_set(failure, 0,
		        "the fence is set, but the guard's user %u does not pass it",
		        (unsigned)spec->uid);
	return rc;
}

int sidecar_fence(struct sidecar_options *o, bool check, struct failure *failure)
{
	int rc = 0;

	if (!check)
		rc = set_and_try(&o->fence, failure);
	if (rc == 0 && !check)
		rc = add_routes(o, failure);
	if (rc == 0 && check)
		find_devices(&o->fence);
	return rc ? rc : verify(&o->fence, check, failure);
}
