/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a table of sysctls, written one after the other. Both "all" and "default"
 * are written, because it differs from entry to entry which of them counts. Interfaces made later
 * start from "default".
 */
#include "vethguard/netlink/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "netlink/sysctls.h"

struct setting {
	const char *name, *value;
	bool required; /* a kernel without it is refused; the others are optional */
};

#define SETTING_NAME_MAX 96

static const struct setting gate_settings[] = {
        /* nothing is ever forwarded */
        {"ipv4/ip_forward", "0", true},
        {"ipv4/conf/all/forwarding", "0", true},
        {"ipv4/conf/default/forwarding", "0", true},
        {"ipv6/conf/all/forwarding", "0", true},
        {"ipv6/conf/default/forwarding", "0", true},
        /* the gate believes nothing that the sandbox says about routes, and tells it nothing */
        {"ipv4/conf/all/rp_filter", "1", true},
        {"ipv4/conf/default/rp_filter", "1", true},
        {"ipv4/conf/all/accept_redirects", "0", true},
        {"ipv4/conf/default/accept_redirects", "0", true},
        {"ipv4/conf/all/secure_redirects", "0", true},
        {"ipv4/conf/default/secure_redirects", "0", true},
        {"ipv4/conf/all/send_redirects", "0", true},
        {"ipv4/conf/default/send_redirects", "0", true},
        {"ipv4/conf/all/accept_source_route", "0", true},
        {"ipv4/conf/default/accept_source_route", "0", true},
        {"ipv4/conf/all/route_localnet", "0", true},
        {"ipv4/conf/default/route_localnet", "0", true},
        {"ipv6/conf/all/accept_redirects", "0", true},
        {"ipv6/conf/default/accept_redirects", "0", true},
        {"ipv6/conf/all/accept_source_route", "-1", true},
        {"ipv6/conf/default/accept_source_route", "-1", true},
        {"ipv6/conf/all/accept_ra", "0", true},
        {"ipv6/conf/default/accept_ra", "0", true},
        {"ipv6/conf/all/autoconf", "0", false},
        {"ipv6/conf/default/autoconf", "0", false},
        {"ipv6/conf/default/router_solicitations", "0", false},
        /* "every address is local" is a matter of routing, not of answering ARP for the whole
         * world */
        {"ipv4/conf/all/arp_ignore", "1", true},
        {"ipv4/conf/default/arp_ignore", "1", true},
        {"ipv4/conf/all/arp_announce", "2", false},
        {"ipv4/conf/default/arp_announce", "2", false},
        /* the link is ready at once */
        {"ipv6/conf/all/accept_dad", "0", false},
        {"ipv6/conf/default/accept_dad", "0", false},
        {"ipv6/conf/default/dad_transmits", "0", false},
        /* each refusal is reported, so that no client waits for a timeout */
        {"ipv4/icmp_ratelimit", "0", false},
        {"ipv4/icmp_msgs_per_sec", "1000000", false},
        {"ipv4/icmp_msgs_burst", "1000000", false},
        {"ipv6/icmp/ratelimit", "0", false},
        /* what waits in the queue of a retiring worker moves to the next worker's */
        {"ipv4/tcp_migrate_req", "1", false},
        /* TPROXY finds the socket; a second, earlier guess by the four-tuple can only be wrong */
        {"ipv4/tcp_early_demux", "0", false},
        {"ipv4/udp_early_demux", "0", false},
};

static int setting_write(int root, const struct setting *s)
{
	int fd = openat(root, s->name, O_WRONLY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, s->value, strlen(s->value)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* 1: it has its value; 0: it has another; or -errno. */
static int setting_is(int root, const struct setting *s)
{
	char value[32] = "";
	int fd = openat(root, s->name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, value, sizeof(value) - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	value[strcspn(value, "\n")] = 0;
	return strcmp(value, s->value) == 0;
}

static const size_t setting_count = sizeof(gate_settings) / sizeof(gate_settings[0]);

int netns_harden_gate(void)
{
	int root = netns_sysctls_open(), rc = 0;

	if (root < 0)
		return root;
	for (size_t i = 0; i < setting_count && rc == 0; i++) {
		rc = setting_write(root, &gate_settings[i]);
		if (!gate_settings[i].required)
			rc = 0;
	}
	close(root);
	return rc;
}

/* 1: it had another value and was corrected; 0: it was right, or is missing or not writable and not
 * required; or -errno. */
static int setting_repair(int root, const struct setting *s)
{
	int rc = setting_is(root, s);

	if (rc > 0)
		return 0;
	if (rc == 0)
		rc = setting_write(root, s);
	if (!s->required)
		return 0;
	return rc < 0 ? rc : 1;
}

/* The same for a link's entry, which started from "default". */
static int link_setting_repair(int root, const struct setting *s, const char *link)
{
	static const char by_default[] = "/conf/default/";
	const char *at = strstr(s->name, by_default);
	struct setting own = *s;
	char name[SETTING_NAME_MAX];
	int rc;

	if (!at)
		return 0;
	snprintf(name, sizeof(name), "%.*s/conf/%s/%s", (int)(at - s->name), s->name, link,
	        at + sizeof(by_default) - 1);
	own.name = name;
	rc = setting_repair(root, &own);
	return rc == -ENOENT ? 0 : rc; /* the link is gone */
}

int netns_harden_gate_again(const char *link)
{
	int root = netns_sysctls_open(), rc = 0, mended = 0;

	if (root < 0)
		return root;
	for (size_t i = 0; i < setting_count && rc >= 0; i++) {
		rc = setting_repair(root, &gate_settings[i]);
		mended |= rc > 0;
		if (rc >= 0)
			rc = link_setting_repair(root, &gate_settings[i], link);
		mended |= rc > 0;
	}
	close(root);
	return rc < 0 ? rc : mended;
}

void netns_settle_link(const char *link)
{
	int root = netns_sysctls_open();
	char name[64];

	if (root < 0)
		return;
	/* Docker disables IPv6 in a container without a network, for every later link */
	snprintf(name, sizeof(name), "ipv6/conf/%s/disable_ipv6", link);
	netns_sysctl_at(root, name, "0");
	snprintf(name, sizeof(name), "ipv6/conf/%s/accept_dad", link);
	netns_sysctl_at(root, name, "0");
	snprintf(name, sizeof(name), "ipv6/conf/%s/dad_transmits", link);
	netns_sysctl_at(root, name, "0");
	close(root);
}
