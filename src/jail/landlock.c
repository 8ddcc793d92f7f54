/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock (landlock(7)): no path of any file system, no TCP bind to a chosen port, TCP connect
 * only to listed ports, no abstract socket of and no signal to processes outside. The system calls
 * are made directly, and numbers that the oldest supported headers lack are defined here. A kernel
 * that supports less gets the part it supports.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "jail/jail_state.h"
#include "vethguard/base/log.h"

/* struct landlock_ruleset_attr as of ABI 6; older headers have only the first member. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

struct port_attr {
	uint64_t allowed_access;
	uint64_t port;
};

#define RULE_NET_PORT 2
#define NET_BIND_TCP (1ULL << 0)
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)

/* Bits of handled_access_fs that each ABI has: 13 in ABI 1, then refer (2), truncate (3), device
 * ioctl (5). */
static uint64_t landlock_fs_rights(int abi)
{
	unsigned bits = 13;

	if (abi >= 2)
		bits = 14;
	if (abi >= 3)
		bits = 15;
	if (abi >= 5)
		bits = 16;
	return (1ULL << bits) - 1;
}

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

static int landlock_allow_port(int ruleset, uint64_t access, uint16_t port)
{
	struct port_attr rule = {access, port};

	return syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) != 0 ? -errno : 0;
}

static int landlock_allow_ports(int ruleset, const uint16_t *ports, size_t count)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = landlock_allow_port(ruleset, NET_CONNECT_TCP, ports[i]);
	return rc;
}

int jail_landlock(const uint16_t *ports, size_t count, bool binds)
{
	int abi = landlock_abi(), ruleset, rc = 0;
	bool any_port = count == SIZE_MAX;
	struct ruleset_attr attr = {.handled_access_fs = landlock_fs_rights(abi)};

	if (abi == 0) {
		log_info("this kernel has no Landlock; the empty root has to do");
		return -EOPNOTSUPP;
	}
	if (abi >= 4)
		attr.handled_access_net = NET_BIND_TCP | (any_port ? 0 : NET_CONNECT_TCP);
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return -errno;
	if (abi >= 4 && !any_port)
		rc = landlock_allow_ports(ruleset, ports, count);
	if (abi >= 4 && rc == 0 && binds) /* port 0 means a port that the kernel chooses */
		rc = landlock_allow_port(ruleset, NET_BIND_TCP, 0);
	if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		rc = -errno;
	if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
		rc = -errno;
	close(ruleset);
	if (rc == 0) {
		jail_state.landlock_abi = abi;
		jail_state.landlock_ports = abi >= 4 && !any_port;
		jail_state.landlock_binds = binds;
		jail_state.port_count = any_port                 ? 0
		                        : count < JAIL_PORTS_MAX ? count
		                                                 : JAIL_PORTS_MAX;
		if (jail_state.port_count > 0)
			memcpy(jail_state.ports, ports, jail_state.port_count * sizeof(*ports));
	}
	return rc;
}

#define FS_READ \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

static int allow_path(int ruleset, const char *path, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {
	        .allowed_access = access, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
	int rc = rule.parent_fd < 0 ? -errno : 0;

	if (rc == 0 &&
	        syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
		rc = -errno;
	if (rule.parent_fd >= 0)
		close(rule.parent_fd);
	return rc;
}

/* The right to execute is granted because later kernels may need it to map a library. Programs
 * still cannot be executed: seccomp refuses that. */
int landlock_read_only(const char *const *writable, size_t count)
{
	const int abi = landlock_abi();
	struct ruleset_attr attr = {.handled_access_fs = landlock_fs_rights(abi)};
	int ruleset, rc;

	if (abi == 0)
		return -EOPNOTSUPP;
	if (abi >= 4)
		attr.handled_access_net = NET_BIND_TCP | NET_CONNECT_TCP;
	if (abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		return -errno;
	rc = allow_path(ruleset, "/", FS_READ);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = allow_path(ruleset, writable[i], attr.handled_access_fs);
	if (rc == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
		rc = -errno;
	close(ruleset);
	if (rc == 0)
		jail_state.landlock_abi = abi;
	return rc;
}
