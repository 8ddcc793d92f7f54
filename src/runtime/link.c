/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All of it runs in the container's namespace (netns_run()). A link that goes down loses its
 * routes, its neighbors and its IPv6 addresses; they are written down before, and set again by the
 * same calls with which the daemon set them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vethguard/netlink/netlink.h"
#include "vethguard/netlink/netns.h"
#include "runtime/link.h"

#define ROUNDS_MAX 16 /* of removing: a bridge's ports count when the bridge is gone */
#define LINKS_MAX 64  /* looked at in one round */
#define MAC_TEXT 18

struct facts {
	struct ip address4, address6, gate4, gate6;
	uint8_t bits4, bits6, mac[6]; /* mac: the gate's; zeros: unknown */
	unsigned index;               /* of the guard's link */
	bool aside;                   /* it is down and has another name */
};

struct job {
	struct facts facts;
	struct fault *fault;
	struct netlink *nl;
	bool net_admin;
	bool there; /* the guard's link, under its name */
	size_t count;
	char names[LINKS_MAX][IFNAMSIZ]; /* links that are not the guard's */
};

static int control(unsigned long request, struct ifreq *r)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	rc = ioctl(fd, request, r) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

static int set_down(const char *name)
{
	struct ifreq r = {.ifr_flags = 0};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	return control(SIOCSIFFLAGS, &r);
}

static int rename_link(const char *from, const char *to)
{
	struct ifreq r = {.ifr_flags = 0};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", from);
	snprintf(r.ifr_newname, sizeof(r.ifr_newname), "%s", to);
	return control(SIOCSIFNAME, &r);
}

/* The gate's MAC, as the daemon wrote it into the table of neighbors (proc_net(5)). */
static void read_mac(struct facts *f)
{
	FILE *table = fopen("/proc/thread-self/net/arp", "re");
	char line[256], address[64], mac[MAC_TEXT], gate[IP_TEXT_MAX];
	unsigned b[6];

	ip_format(&f->gate4, gate);
	while (table && fgets(line, sizeof(line), table)) {
		if (sscanf(line, "%63s %*s %*s %17s", address, mac) != 2 ||
		        strcmp(address, gate) != 0 ||
		        sscanf(mac, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3], &b[4],
		                &b[5]) != 6)
			continue;
		for (size_t i = 0; i < 6; i++)
			f->mac[i] = (uint8_t)b[i];
	}
	if (table)
		fclose(table);
}

static int note_link(void *context)
{
	struct job *job = context;
	struct facts *f = &job->facts;
	unsigned index = netlink_link_index(job->nl, LINK_INSIDE);
	int rc = index ? 0 : -ENODEV;

	f->index = index;
	if (rc || !f->aside)
		return rc;
	rc = netlink_address_first(job->nl, index, 4, &f->address4, &f->bits4);
	if (!rc)
		rc = netlink_address_first(job->nl, index, 6, &f->address6, &f->bits6);
	read_mac(f);
	if (!rc)
		rc = set_down(LINK_INSIDE);
	return rc ? rc : rename_link(LINK_INSIDE, LINK_ASIDE);
}

static void note(void *context, const struct netlink_link *link)
{
	struct job *job = context;

	if (link->index == job->facts.index)
		job->there = strcmp(link->name, job->facts.aside ? LINK_ASIDE : LINK_INSIDE) == 0;
	else if (!netlink_link_is_kernels(link) && job->count < LINKS_MAX)
		snprintf(job->names[job->count++], IFNAMSIZ, "%s", link->name);
}

static int refuse_net_admin(struct job *job)
{
	fault_set(job->fault,
	        "the engine has put a link %s into the container's network namespace, and the "
	        "container "
	        "has CAP_NET_ADMIN, by which it could reach the other end's network even without "
	        "the "
	        "link: start it with --network none, or without that capability",
	        job->names[0]);
	return -EPERM;
}

static int remove_others(struct job *job)
{
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		int rc;

		job->count = 0;
		job->there = false;
		rc = netlink_links_of(job->nl, 0, note, job);
		if (rc)
			return rc;
		if (job->count == 0)
			return job->there ? 0 : -ENODEV;
		if (job->net_admin)
			return refuse_net_admin(job);
		for (size_t i = 0; i < job->count; i++)
			(void)netlink_link_delete(job->nl, job->names[i]);
	}
	fault_set(job->fault,
	        "the engine has put a link %s into the container's network namespace, by which it "
	        "could "
	        "leave past the guard, and the link cannot be removed",
	        job->names[0]);
	return -EBUSY;
}

/* Without IPv6 (a sysctl of the container's) only that family is missing. */
static int set_up_ipv6(struct job *job)
{
	const struct facts *f = &job->facts;
	int rc;

	if (!f->address6.family || !f->gate6.family)
		return 0;
	rc = netlink_address_add(job->nl, LINK_INSIDE, &f->address6, f->bits6);
	if (rc && rc != -EEXIST)
		return 0;
	if (memcmp(f->mac, (uint8_t[6]){0}, 6) != 0)
		(void)netlink_neighbor_permanent(job->nl, LINK_INSIDE, &f->gate6, f->mac);
	return netlink_route_default(job->nl, LINK_INSIDE, &f->gate6);
}

static int set_up(struct job *job)
{
	const struct facts *f = &job->facts;
	int rc = rename_link(LINK_ASIDE, LINK_INSIDE);

	if (!rc)
		netns_settle_link(LINK_INSIDE);
	if (!rc && f->address4.family)
		rc = netlink_address_add(job->nl, LINK_INSIDE, &f->address4, f->bits4);
	if (!rc || rc == -EEXIST)
		rc = netlink_link_up(job->nl, LINK_INSIDE);
	if (!rc && f->gate4.family && memcmp(f->mac, (uint8_t[6]){0}, 6) != 0)
		rc = netlink_neighbor_permanent(job->nl, LINK_INSIDE, &f->gate4, f->mac);
	if (!rc && f->gate4.family)
		rc = netlink_route_default(job->nl, LINK_INSIDE, &f->gate4);
	return rc ? rc : set_up_ipv6(job);
}

static int refuse_socket(struct job *job, const char *kind)
{
	fault_set(job->fault,
	        "the engine has opened a %s socket in the container's network namespace (Docker's "
	        "resolver, which answers past the guard on networks that have a name): start the "
	        "container with --network none or on the default network",
	        kind);
	return -EBUSY;
}

/* dockerd 28 announces a container's addresses for some seconds, from inside the container's
 * namespace: over ICMPv6, and over packet sockets for ARP or for no protocol. Such sockets do not
 * receive anything that a program inside could pass on. */
#define RAW6 "RAW6"
#define ICMPV6_PORT ":003A" /* a raw socket's protocol, in the place of its port (proc_net(5)) */
#define ARP 0x0806u

/* True if all raw IPv6 sockets are for ICMPv6. */
static bool raw6_only_announce(void)
{
	FILE *file = fopen("/proc/thread-self/net/raw6", "re");
	char line[512], local[64];
	bool good = file && fgets(line, sizeof(line), file); /* the heading */

	while (good && fgets(line, sizeof(line), file)) {
		const char *port;

		good = sscanf(line, "%*s %63s", local) == 1;
		port = good ? strchr(local, ':') : NULL;
		good = port && strcmp(port, ICMPV6_PORT) == 0;
	}
	if (file)
		fclose(file);
	return good;
}

/* The namespace's own counters (proc_net(5)): the tables of sockets take the kernel milliseconds to
 * walk. Lines are like "UDP6: inuse 1 ...". Returns 0, -EBUSY with a fault, or -errno. */
static int look_at_counters(struct job *job, const char *path)
{
	static const char *const kinds[] = {
	        "TCP", "UDP", "UDPLITE", "RAW", "TCP6", "UDP6", "UDPLITE6", RAW6};
	FILE *file = fopen(path, "re");
	char line[256], kind[16];
	unsigned long count;
	int rc = 0;

	if (!file)
		return -errno;
	while (!rc && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%15[A-Z0-9]: inuse %lu", kind, &count) != 2 || count == 0)
			continue;
		if (strcmp(kind, RAW6) == 0 && raw6_only_announce())
			continue;
		for (size_t i = 0; !rc && i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (strcmp(kind, kinds[i]) == 0)
				rc = refuse_socket(job, kind);
	}
	fclose(file);
	return rc;
}

/* A kernel without such sockets has no such file. */
static int look_at_packets(struct job *job)
{
	FILE *file = fopen("/proc/thread-self/net/packet", "re");
	char line[256];
	unsigned protocol;
	bool good = !file || fgets(line, sizeof(line), file); /* the heading */

	while (good && file && fgets(line, sizeof(line), file))
		good = sscanf(line, "%*s %*s %*s %x", &protocol) == 1 &&
		       (protocol == ARP || protocol == 0);
	if (file)
		fclose(file);
	return good ? 0 : refuse_socket(job, "packet");
}

static int look_for_sockets(struct job *job)
{
	int rc = look_at_counters(job, "/proc/thread-self/net/sockstat");

	if (!rc) {
		rc = look_at_counters(job, "/proc/thread-self/net/sockstat6");
		rc = rc == -ENOENT ? 0 : rc; /* no IPv6 */
	}
	return rc ? rc : look_at_packets(job);
}

static int settle(void *context)
{
	struct job *job = context;
	int rc = remove_others(job);

	if (!rc)
		rc = look_for_sockets(job);
	return rc || !job->facts.aside ? rc : set_up(job);
}

static int with_netlink(void *context, int (*what)(void *))
{
	struct job *job = context;
	int rc = netlink_open(&job->nl);

	if (rc)
		return rc;
	rc = what(job);
	netlink_close(job->nl);
	return rc;
}

static int run_note(void *context)
{
	return with_netlink(context, note_link);
}

static int run_settle(void *context)
{
	return with_netlink(context, settle);
}

static int run_inside(const char *netns, int (*what)(void *), struct job *job)
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = netns_run(fd, what, job);
	close(fd);
	return rc;
}

static void read_ip(const json_t *object, const char *key, struct ip *out)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text || !ip_parse(slice_from_string(text), out))
		out->family = 0;
}

static json_t *facts_text(const struct facts *f)
{
	char a4[IP_TEXT_MAX] = "", a6[IP_TEXT_MAX] = "", g4[IP_TEXT_MAX] = "", g6[IP_TEXT_MAX] = "";
	char mac[MAC_TEXT];

	if (f->address4.family)
		ip_format(&f->address4, a4);
	if (f->address6.family)
		ip_format(&f->address6, a6);
	if (f->gate4.family)
		ip_format(&f->gate4, g4);
	if (f->gate6.family)
		ip_format(&f->gate6, g6);
	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", f->mac[0], f->mac[1], f->mac[2],
	        f->mac[3], f->mac[4], f->mac[5]);
	return json_pack("{s:i, s:b, s:s, s:i, s:s, s:i, s:s, s:s, s:s}", "index", (int)f->index,
	        "aside", f->aside, "address4", a4, "bits4", f->bits4, "address6", a6, "bits6",
	        f->bits6, "gate4", g4, "gate6", g6, "mac", mac);
}

static void facts_read(struct facts *f, const json_t *text)
{
	const char *mac = json_string_value(json_object_get(text, "mac"));
	unsigned b[6] = {0};

	read_ip(text, "address4", &f->address4);
	read_ip(text, "address6", &f->address6);
	read_ip(text, "gate4", &f->gate4);
	read_ip(text, "gate6", &f->gate6);
	f->index = (unsigned)json_integer_value(json_object_get(text, "index"));
	f->aside = json_is_true(json_object_get(text, "aside"));
	f->bits4 = (uint8_t)json_integer_value(json_object_get(text, "bits4"));
	f->bits6 = (uint8_t)json_integer_value(json_object_get(text, "bits6"));
	if (mac && sscanf(mac, "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3], &b[4],
	                   &b[5]) == 6)
		for (size_t i = 0; i < 6; i++)
			f->mac[i] = (uint8_t)b[i];
}

json_t *link_note(const char *netns, const json_t *sandbox, bool aside, struct fault *fault)
{
	const json_t *addresses = json_object_get(sandbox, "addresses");
	struct job job = {.fault = fault, .facts = {.aside = aside}};
	json_t *facts = NULL;
	int rc;

	read_ip(addresses, "gate4", &job.facts.gate4);
	read_ip(addresses, "gate6", &job.facts.gate6);
	rc = run_inside(netns, run_note, &job);
	if (!rc)
		facts = facts_text(&job.facts);
	if (!facts)
		fault_set(fault, "the guard's link in %s: %s", netns, strerror(rc ? -rc : ENOMEM));
	return facts;
}

bool link_settle(const char *netns, const json_t *facts, bool net_admin, struct fault *fault)
{
	struct job job = {.fault = fault, .net_admin = net_admin};
	int rc;

	facts_read(&job.facts, facts);
	rc = run_inside(netns, run_settle, &job);
	return rc == 0 || fault_set(fault, "the guard's link in %s: %s", netns, strerror(-rc));
}
