/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dialling: name -> addresses -> those that may be dialled -> a connection.
 *
 * Here: which addresses may be dialled, and a dial's beginning and end. An address of this host
 * itself is refused like a private one: a public name that resolves to it would reach services that
 * trust local callers. The kernel tells, and nothing is sent to ask it. That an address is not the
 * host's is believed for NOT_OWN_MS.
 *
 * A socket is registered with the loop once: whoever gets it gets the registration too.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/dial.h"

#define NOT_OWN_MS 5000
#define ANY_PORT 9
#define PROBE 0x10           /* the kernel's MSG_PROBE, which libc has under another name */
#define LINK_BYTES_MAX 65535 /* no device but the loopback takes larger packets */
#define LOOPBACK_INDEX 1     /* in every network namespace */

/* --- the end --- */

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	resolver_wait_cancel(&d->waiting);
	for (size_t i = 0; i < d->count; i++)
		dial_attempt_close(&d->attempts[i]);
	loop_timer_close(&d->stagger);
	loop_task_cancel(d->proxy->config.loop, &d->finish);
	loop_io_close(&d->io);
	if (d->result.fd >= 0)
		close(d->result.fd);
	free(d);
}

void dial_on_early(struct loop_io *io, unsigned events)
{
	container_of(io, struct dial, io)->result.events |= events;
}

/* Results are told in a task, so that done is never called from within dial_start() or a resolver's
 * callback. */
static void on_finish(struct loop_task *task)
{
	struct dial *d = container_of(task, struct dial, finish);
	struct dial_result result = d->result;
	dial_done done = d->done;
	void *context = d->context;
	struct loop_io io = {0};

	if (result.fd >= 0)
		loop_io_move(&d->io, &io, dial_on_early);
	result.io = &io;
	d->result.fd = -1;
	dial_cancel(d);
	done(context, &result);
}

void dial_finish(struct dial *d)
{
	loop_task_queue(d->proxy->config.loop, &d->finish);
}

void dial_refuse_address(struct dial *d, const struct ip *address, const char *detail)
{
	dial_fail(d, EVENT_CAUSE_ADDRESS, detail);
	d->result.address = *address;
}

void dial_fail(struct dial *d, enum event_cause cause, const char *detail)
{
	d->result.cause = cause;
	d->result.detail = detail;
}

/* --- addresses --- */

/* An address that the sender names as its own has to be one that is delivered locally, which the
 * kernel looks up first. The source address that it would choose by itself tells less: of several
 * addresses in one network it takes the first for all. Empty and only to be confirmed, the message
 * is not sent where the address is right either. */
static bool is_own_ipv4(int fd, const struct ip *address)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(struct in_pktinfo)),
	                     .cmsg_level = IPPROTO_IP,
	                     .cmsg_type = IP_PKTINFO}};
	struct sockaddr_storage to;
	struct in_pktinfo info = {0};
	struct msghdr message = {.msg_name = &to,
	        .msg_namelen = ip_to_sockaddr(address, ANY_PORT, &to),
	        .msg_control = &control,
	        .msg_controllen = sizeof control};

	memcpy(&info.ipi_spec_dst, address->bytes, sizeof info.ipi_spec_dst);
	memcpy(CMSG_DATA(&control.head), &info, sizeof info);
	return sendmsg(fd, &message, MSG_CONFIRM | PROBE) == 0 ||
	       (errno != EINVAL && errno != ENETUNREACH);
}

/* A route over the loopback: that of a network that is local as a whole (ip-route(8), type local).
 * Nothing is sent, as above. */
static bool leads_over_loopback(int fd, const struct ip *address)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(struct in6_pktinfo)),
	                     .cmsg_level = IPPROTO_IPV6,
	                     .cmsg_type = IPV6_PKTINFO}};
	const struct in6_pktinfo info = {.ipi6_ifindex = LOOPBACK_INDEX};
	struct sockaddr_storage to;
	struct msghdr message = {.msg_name = &to,
	        .msg_namelen = ip_to_sockaddr(address, ANY_PORT, &to),
	        .msg_control = &control,
	        .msg_controllen = sizeof control};

	memcpy(CMSG_DATA(&control.head), &info, sizeof info);
	return sendmsg(fd, &message, MSG_CONFIRM | PROBE) == 0 || errno == ENOMEM ||
	       errno == ENOBUFS;
}

/* Connecting a datagram socket sends nothing and tells which source address the kernel would use:
 * the address itself, where that is assigned to this host (RFC 6724 section 5, rule 1). The route
 * of a local network may also name another device: then it is the size of packets that shows the
 * loopback, by which they go all the same. */
static bool is_own_ipv6(int fd, const struct ip *address)
{
	struct sockaddr_storage to, local;
	socklen_t n = ip_to_sockaddr(address, ANY_PORT, &to), local_n = sizeof local;
	int mtu = 0;
	socklen_t mtu_n = sizeof mtu;
	struct ip source;

	if (leads_over_loopback(fd, address))
		return true;
	if (connect(fd, (struct sockaddr *)&to, n) < 0)
		return false; /* there is no way to it */
	if (getsockname(fd, (struct sockaddr *)&local, &local_n) < 0 ||
	        getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &mtu_n) < 0)
		return true;
	source = ip_from_sockaddr((struct sockaddr *)&local, NULL);
	return ip_equals(&source, address) || mtu > LINK_BYTES_MAX;
}

/* Anything unclear counts as the host's own. */
static bool is_own(const struct ip *address)
{
	bool ipv4 = address->family == 4, own;
	int fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return true;
	own = ipv4 ? is_own_ipv4(fd, address) : is_own_ipv6(fd, address);
	close(fd);
	return own;
}

/* Where an answer about the address is kept. */
static struct not_own *not_own_slot(struct proxy *proxy, const struct ip *address)
{
	unsigned sum = 0;

	for (size_t i = 0; i < sizeof address->bytes; i++)
		sum = sum * 31 + address->bytes[i];
	return &proxy->not_own[sum % DIAL_NOT_OWN_KEPT];
}

bool dial_may_connect(
        struct proxy *proxy, const struct policy_decision *decision, const struct ip *address)
{
	struct not_own *known = not_own_slot(proxy, address);
	int64_t now_ms;

	if (decision->names_exactly)
		return true;
	for (size_t i = 0; i < proxy->config.permit_count; i++) {
		const struct ip_prefix *permit = &proxy->config.permit[i];

		if (permit->bits == (address->family == 4 ? 32 : 128) &&
		        ip_in_prefix(address, permit))
			return true;
	}
	now_ms = loop_now_ms(proxy->config.loop);
	if (now_ms < known->until_ms && ip_equals(&known->address, address))
		return true;
	if (is_own(address))
		return false;
	*known = (struct not_own){.address = *address, .until_ms = now_ms + NOT_OWN_MS};
	return true;
}

/* Keeps the addresses that may be dialled, IPv6 and IPv4 in turn. */
static void choose(struct dial *d, const struct ip *all, size_t count)
{
	const struct ip *families[2][RESOLVER_ADDRESSES_MAX];
	size_t n[2] = {0, 0}, i[2] = {0, 0};
	const struct ip *refused = NULL; /* the first */

	for (size_t k = 0; k < count && k < RESOLVER_ADDRESSES_MAX; k++) {
		if (judge_address(d->proxy, &d->decision, &all[k]))
			families[all[k].family == 4][n[all[k].family == 4]++] = &all[k];
		else if (!refused)
			refused = &all[k];
	}
	for (unsigned f = 0; i[0] < n[0] || i[1] < n[1]; f ^= 1)
		if (i[f] < n[f])
			d->addresses[d->count++] = *families[f][i[f]++];
	if (d->count == 0 && refused)
		dial_refuse_address(d, refused,
		        "the destination is a private or otherwise special address, which no rule "
		        "names and the configuration does not permit");
}

/* The addresses that passed are the proxy's to dial. */
static void begin(struct dial *d)
{
	if (!d->through) {
		dial_try_next(d);
		return;
	}
	memcpy(d->targets, d->addresses, sizeof d->targets);
	d->target_count = d->count;
	d->count = 0;
	if (d->target_count)
		dial_proxy(d);
	else
		dial_finish(d);
}

/* --- the beginning --- */

static void resolved(struct dial *d, const struct resolver_answer *answer)
{
	if (!answer->count)
		dial_fail(d, EVENT_CAUSE_RESOLVE, answer->error);
	else
		choose(d, answer->addresses, answer->count);
	begin(d);
}

static void on_answer(struct resolver_wait *wait, const struct resolver_answer *answer)
{
	resolved(container_of(wait, struct dial, waiting), answer);
}

struct dial *dial_start(struct proxy *proxy, const struct destination *destination,
        const struct policy_decision *decision, dial_done done, void *context)
{
	struct dial *d = calloc(1, sizeof *d);

	if (!d)
		return NULL;
	d->proxy = proxy;
	d->destination = *destination;
	d->decision = *decision;
	d->done = done;
	d->context = context;
	d->result.fd = -1;
	d->waiting.on_answer = on_answer;
	d->finish.run = on_finish;
	for (size_t i = 0; i < RESOLVER_ADDRESSES_MAX; i++) {
		d->attempts[i].dial = d;
		d->attempts[i].fd = -1;
	}
	d->through = proxy->config.egress && proxy->config.egress->proxy_port;
	if (d->through && destination->host_n && !proxy->config.egress->resolve_local) {
		dial_proxy(d);
	} else if (destination->host_n) {
		const struct resolver_answer *answer = resolver_get(
		        proxy->config.resolver, destination_host(&d->destination), &d->waiting);

		if (answer)
			resolved(d, answer);
	} else {
		choose(d, &destination->address, destination->address.family != 0);
		begin(d);
	}
	return d;
}
