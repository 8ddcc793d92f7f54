/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guarded command's own limits. The filter allows by default and refuses a few calls, so it has
 * one part per architecture that the kernel can run: a 32-bit program must not find what a 64-bit
 * one cannot. 32-bit x86 programs that open sockets with socketcall(2) hide the family behind a
 * pointer that no filter can read, so they get no socket.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/net.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "vethguard/jail/capabilities.h"
#include "vethguard/jail/guest.h"

#define BIT(cap) (1ULL << (cap))

/* What root inside the sandbox may have at most: power over its own files, processes and
 * network. */
static uint64_t guest_capabilities(void)
{
	return BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) |
	       BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) | BIT(CAP_SETUID) |
	       BIT(CAP_SETPCAP) | BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_NET_BROADCAST) |
	       BIT(CAP_NET_ADMIN) | BIT(CAP_NET_RAW) | BIT(CAP_IPC_LOCK) | BIT(CAP_IPC_OWNER) |
	       BIT(CAP_SYS_CHROOT) | BIT(CAP_SYS_PTRACE) | BIT(CAP_SYS_NICE) |
	       BIT(CAP_SYS_RESOURCE) | BIT(CAP_SETFCAP) | BIT(CAP_LEASE);
}

int jail_guest_bound(void)
{
	uint64_t keep = guest_capabilities();
	struct capabilities sets;
	int rc = capabilities_bound(keep);

	if (rc == 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		rc = -errno;
	if (rc == 0)
		rc = capabilities_get(&sets);
	if (rc != 0)
		return rc;
	sets.permitted &= keep;
	sets.effective &= keep;
	sets.inheritable = 0;
	return capabilities_set(&sets);
}

static bool family_allowed(unsigned family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6 ||
	       family == AF_NETLINK || family == AF_PACKET || family == AF_ALG;
}

static int refuse_families(scmp_filter_ctx filter)
{
	const uint32_t refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);
	int rc = 0;

	for (unsigned family = 0; rc == 0 && family < AF_ALG; family++)
		if (!family_allowed(family))
			rc = seccomp_rule_add(
			        filter, refuse, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
	/* 64 bits are compared although the kernel uses 32: a number with high bits set is refused
	 * here as well */
	if (rc == 0)
		rc = seccomp_rule_add(
		        filter, refuse, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_ALG));
	return rc;
}

/* The command shares the terminal with the shell outside, and may not type into it (ioctl_tty(2)).
 * The kernel looks at 32 bits of the request, so the filter does too. */
static int refuse_typing(scmp_filter_ctx filter)
{
	static const unsigned requests[] = {TIOCSTI, TIOCLINUX};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(requests) / sizeof(requests[0]); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
		        SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, requests[i]));
	return rc;
}

/* Keys belong to no namespace of the sandbox. request_key(2) makes the kernel start
 * /sbin/request-key outside, which for a key of type dns_resolver sends a query of the caller's
 * choice; and the session's keyring holds tickets of the user. So the calls fail as on a kernel
 * without keys. */
static int refuse_keys(scmp_filter_ctx filter)
{
	static const int calls[] = {SCMP_SYS(request_key), SCMP_SYS(add_key), SCMP_SYS(keyctl)};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(calls) / sizeof(calls[0]); i++)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), calls[i], 0);
	return rc;
}

static int load_for(uint32_t arch)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc = !filter ? -ENOMEM : 0;

	if (rc == 0 && arch != seccomp_arch_native()) {
		rc = seccomp_arch_add(filter, arch);
		if (rc == 0)
			rc = seccomp_arch_remove(filter, SCMP_ARCH_NATIVE);
	}
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
	/* whether no_new_privs is wanted is up to the caller */
	if (rc == 0)
		rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (rc == 0)
		rc = refuse_families(filter);
	if (rc == 0 && arch == SCMP_ARCH_X86)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socketcall), 1,
		        SCMP_A0(SCMP_CMP_EQ, SYS_SOCKET));
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup), 0);
	if (rc == 0)
		rc = refuse_typing(filter);
	if (rc == 0)
		rc = refuse_keys(filter);
	if (rc == 0)
		rc = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return rc;
}

int jail_guest_seccomp(void)
{
#if defined(__x86_64__)
	static const uint32_t archs[] = {SCMP_ARCH_X86, SCMP_ARCH_X32, SCMP_ARCH_X86_64};
#elif defined(__aarch64__)
	static const uint32_t archs[] = {SCMP_ARCH_ARM, SCMP_ARCH_AARCH64};
#else
	static const uint32_t archs[] = {SCMP_ARCH_NATIVE};
#endif
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(archs) / sizeof(archs[0]); i++)
		rc = load_for(archs[i]);
	return rc;
}
