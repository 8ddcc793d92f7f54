/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expose: the ports of a sandbox that a policy publishes, and the sources that may reach each of them. All functions
 * here read an opened image.
 */
#ifndef VETHGUARD_POLICY_EXPOSE_H
#define VETHGUARD_POLICY_EXPOSE_H

#include "vethguard/policy/policy.h"

#define POLICY_SANDBOX_SUFFIX ".sandbox.internal" /* host names with this suffix are other sandboxes */
#define POLICY_EXPOSES_MAX 16                     /* published ports of one policy */
#define POLICY_EXPOSE_FROM_MAX 64                 /* sources of one port */
#define POLICY_EXPOSE_LABEL_MAX 320               /* bytes of "KEY=VALUE" */
#define POLICY_EXPOSE_CONNECTIONS 128
#define POLICY_EXPOSE_CONNECTIONS_MAX 10000

/* One port of the sandbox. */
struct policy_expose {
	struct slice name; /* as a rule's name */
	uint16_t port;     /* in the sandbox; unique in the policy */
	struct ip at;      /* where the host listens; family 0: only other sandboxes reach the port */
	uint16_t at_port;
	uint32_t connections; /* bound on simultaneous connections */
	uint32_t from_count;
};

enum policy_from_kind {
	POLICY_FROM_HOST,    /* this machine: its loopback, or one of its own addresses */
	POLICY_FROM_NETWORK, /* an address or a network */
	POLICY_FROM_SANDBOX, /* another sandbox, by its name */
	POLICY_FROM_LABEL,   /* other sandboxes, by a label */
	POLICY_FROM_COUNT
};

/* One source that may reach a port. */
struct policy_from {
	enum policy_from_kind kind;
	struct slice text; /* canonical: "host", "10.0.0.0/8", "sandbox:NAME", "label:KEY=VALUE" */
	struct ip_prefix network;
};

/* Who connects: an address, or another sandbox (its name is not empty). */
struct policy_peer {
	struct ip address;
	bool own; /* the address is one of this machine's */
	struct slice sandbox;
	const struct slice *labels; /* "KEY=VALUE" each */
	size_t label_count;
};

uint32_t policy_expose_count(const struct policy *policy);
void policy_expose(const struct policy *policy, uint32_t index, struct policy_expose *out);
/* Returns source i of the port. */
void policy_expose_from(const struct policy *policy, uint32_t index, uint32_t i, struct policy_from *out);
/* Returns the index of a port of the sandbox, or POLICY_NONE if the policy does not publish it. */
uint32_t policy_expose_find(const struct policy *policy, uint16_t port);
/* True if one of the port's sources is this peer. */
bool policy_expose_admits(const struct policy *policy, uint32_t index, const struct policy_peer *peer);
/* True if policy a publishes its port i in the same way as policy b its port j. */
bool policy_expose_equals(const struct policy *a, uint32_t i, const struct policy *b, uint32_t j);

/* Writes "127.0.0.1:8080" or "[::1]:8080" to out. Returns out. */
#define POLICY_ENDPOINT_MAX 64
const char *policy_endpoint_text(const struct ip *address, uint16_t port, char out[POLICY_ENDPOINT_MAX]);
/* Writes the entry of the policy on one line: "8080 at 127.0.0.1:8080 from host, sandbox:planner". Cuts it to size.
 * Returns out. */
#define POLICY_EXPOSE_TEXT_MAX 512
const char *policy_expose_text(const struct policy *policy, uint32_t index, char *out, size_t size);

#endif
