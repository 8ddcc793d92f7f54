/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers DNS queries of this network namespace with a synthetic address for each name; no query
 * leaves. A redirected connection goes to such an address, so its name is known, and the gateway
 * resolves the name.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "connect.h"
#include "vethguard/base/log.h"
#include "vethguard/dns/responder.h"
#include "vethguard/policy/url.h"

#define NAMES_MAX 65536
#define BATCH 32

/* 198.18.0.0/15 is for benchmarks (RFC 2544), so it is routed nowhere. IPv6 has no such range:
 * answers hold IPv4 addresses only, although names_new() wants a pool of each family. */
static const struct ip_prefix pool4 = {{4, {198, 18}}, 15};
static const struct ip_prefix pool6 = {{6, {0xfd, 0x76, 0x67}}, 64};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t answer(struct connect *c, const struct dns_query *q, uint8_t *out)
{
	char host[POLICY_HOST_MAX + 1];
	struct ip v4, v6;
	size_t n;

	if (!q->name_is_host || !url_canonical_host(slice_of(q->name, q->name_n), host, &n))
		return dns_answer_build(q, DNS_NXDOMAIN, NULL, 0, out, DNS_ANSWER_MAX);
	if (names_assign(c->names, slice_of(host, n), now_ms(), &v4, &v6) != 0)
		return dns_answer_build(q, DNS_SERVFAIL, NULL, 0, out, DNS_ANSWER_MAX);
	return dns_answer_build(q, DNS_NOERROR, q->type == DNS_A ? &v4 : NULL, RESPONDER_TTL_S, out,
	        DNS_ANSWER_MAX);
}

static void on_query(evutil_socket_t fd, short what, void *context)
{
	uint8_t in[DNS_UDP_MAX], out[DNS_ANSWER_MAX];
	struct sockaddr_storage from;
	struct dns_query q;

	(void)what;
	for (unsigned i = 0; i < BATCH; i++) {
		socklen_t n = sizeof(from);
		const ssize_t got = recvfrom(fd, in, sizeof(in), 0, (struct sockaddr *)&from, &n);
		size_t size;
		int rc;

		if (got < 0)
			return;
		rc = dns_query_parse(in, (size_t)got, &q);
		if (rc == -EBADMSG)
			continue;
		if (rc)
			size = dns_answer_build(&q, rc == -ENOTSUP ? DNS_NOTIMP : DNS_FORMERR, NULL,
			        0, out, sizeof(out));
		else
			size = answer(context, &q, out);
		if (size)
			sendto(fd, out, size, 0, (struct sockaddr *)&from, n);
	}
}

static bool listen_at(struct connect *c, size_t i, const char *address)
{
	struct sockaddr_storage at;
	struct ip ip;
	socklen_t n;

	ip_parse(slice_from_string(address), &ip);
	n = ip_to_sockaddr(&ip, c->arguments.port, &at);
	c->dns_fd[i] = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->dns_fd[i] < 0 || bind(c->dns_fd[i], (struct sockaddr *)&at, n) < 0)
		return false;
	c->dns_event[i] = event_new(c->base, c->dns_fd[i], EV_READ | EV_PERSIST, on_query, c);
	return c->dns_event[i] && event_add(c->dns_event[i], NULL) == 0;
}

bool names_serve(struct connect *c)
{
	c->names = names_new(&pool4, &pool6, NAMES_MAX);
	if (!c->names || !listen_at(c, 0, "127.0.0.1")) {
		log_error("DNS cannot be served on 127.0.0.1:%u; choose another port with --port",
		        c->arguments.port);
		return false;
	}
	if (!listen_at(c, 1, "::1"))
		log_debug("DNS is not served on ::1");
	return true;
}

void names_end(struct connect *c)
{
	for (size_t i = 0; i < LISTENERS; i++) {
		if (c->dns_event[i])
			event_free(c->dns_event[i]);
		if (c->dns_fd[i] >= 0)
			close(c->dns_fd[i]);
	}
	names_free(c->names);
}

bool names_of(const struct connect *c, const struct ip *address, char *out, size_t size)
{
	char text[IP_TEXT_MAX];
	struct slice host;

	if (names_lookup(c->names, address, &host))
		snprintf(out, size, "%.*s", SLICE_ARG(host));
	else if (!names_is_synthetic(c->names, address))
		snprintf(out, size, address->family == 6 ? "[%s]" : "%s", ip_format(address, text));
	else
		return false;
	return true;
}

void names_host(const struct connect *c, const struct ip *address, char *out, size_t size)
{
	struct slice host;

	*out = 0;
	if (names_lookup(c->names, address, &host))
		snprintf(out, size, "%.*s", SLICE_ARG(host));
}
