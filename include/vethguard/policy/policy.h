/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy: the compiled policy and the one pure decision function. The proxy, the DNS responder, the compiler of
 * kernel rules, and every `vethguard policy` command ask here and nowhere else.
 *
 * A compiled policy is an image: one flat run of bytes with offsets instead of pointers, built once by the loader
 * (policy/load.h), shared read-only with workers through a sealed memfd, so that a thousand sandboxes under one
 * policy share its pages. Nothing in an image is secret.
 */
#ifndef VETHGUARD_POLICY_POLICY_H
#define VETHGUARD_POLICY_POLICY_H

#include "vethguard/base/ip.h"
#include "vethguard/base/slice.h"

#define POLICY_HOST_MAX 253     /* bytes of a host name (RFC 1035 section 2.3.4) */
#define POLICY_NAME_MAX 64      /* bytes of a policy, rule or credential name */
#define POLICY_PATH_MAX 8192    /* bytes of a path pattern or a canonical path */
#define POLICY_METHOD_MAX 32    /* bytes of a method */
#define POLICY_CREDENTIALS_MAX 64
#define POLICY_RULES_MAX 250000
#define POLICY_IMAGE_MAX (256u << 20) /* bytes */
#define POLICY_UPGRADE_MAX 64   /* bytes of a protocol's name that a connection is upgraded to */
#define POLICY_NONE UINT32_MAX  /* no rule, no credential */

enum policy_scheme { POLICY_HTTPS, POLICY_HTTP, POLICY_TCP, POLICY_UDP, POLICY_SCHEME_COUNT };
enum policy_verdict { POLICY_DENY, POLICY_ALLOW };
enum policy_mode { POLICY_ENFORCE, POLICY_OBSERVE };

/* Why a decision came out as it did. */
enum policy_reason {
	POLICY_REASON_RULE,             /* the rule in decision.rule says so */
	POLICY_REASON_DEFAULT,          /* no rule mentions the destination */
	POLICY_REASON_PORT,             /* a rule names the host, but not this port or scheme */
	POLICY_REASON_METHOD,           /* rules match the destination, none this method, or only others allow the path */
	POLICY_REASON_PATH,             /* rules match destination and method, none this path */
	POLICY_REASON_READING,          /* a rule matches the path as it is written, not as some servers read it */
	POLICY_REASON_BAD_REQUEST,      /* the request cannot be judged (no host, path not canonical) */
	POLICY_REASON_UPGRADE,          /* the rule allows the request, but not the upgrade that it asks for */
	POLICY_REASON_COUNT
};

/* What is asked. Slices are borrowed for the call. */
struct policy_request {
	enum policy_scheme scheme;
	struct slice host;   /* canonical: lower case, no trailing dot, A-labels; empty when only an address is known */
	struct ip address;   /* destination address literal (from the URL, or dialled directly); family 0: none */
	uint16_t port;
	struct slice method; /* as sent (case-sensitive); empty: judge the connection only (any method, any path) */
	struct slice path;   /* canonical, no query; begins with '/'; ignored without a method */
};

struct policy_decision {
	enum policy_verdict verdict;
	enum policy_reason reason;
	uint32_t rule;       /* index for policy_rule_*(), or POLICY_NONE */
	uint32_t credential; /* index for policy_credential(), or POLICY_NONE */
	bool passthrough;    /* the allowing rule says tls: passthrough */
	bool observed;       /* mode observe turned a denial into this allow: reason and rule are the denial's */
	bool names_address;  /* the allowing rule names the destination as an address or network and means it
	                        (ip_network_means), which permits dialling it whatever its class */
	bool names_exactly;  /* it names just this address, which permits dialling it although it is the host's own */
};

/* An opened image. Filled by policy_open; borrows the bytes. */
struct policy {
	const uint8_t *image;
	size_t size;
};

/* Checks the whole image (magic, version, every offset and count) so that later calls need no check. 0 or -EBADMSG. */
int policy_open(struct policy *policy, const void *image, size_t size);

/* The decision. Pure, total, no allocation; cost does not grow with the number of exact hosts. Deny beats allow; the
 * most specific allow names the credential (host before glob before address, then the longer literal path; of equals
 * one with a credential before one without). Denies are generous: one for tcp:// denies everything that runs over TCP
 * there, the case of a method does not save it, nor does any way to write a path that some server reads as a denied one.
 * An allow does not match a path that some server may read as one outside of the rule. In mode observe every denial, a deny
 * rule's too, becomes an allow with observed set, no credential and no passthrough; a request that cannot be judged
 * (POLICY_REASON_BAD_REQUEST) stays denied. */
void policy_decide(const struct policy *policy, const struct policy_request *request, struct policy_decision *out);

/* How an intercepted TLS connection to host (SNI) and port is to be treated, before any request is known. */
enum policy_tls { POLICY_TLS_REFUSE, POLICY_TLS_INTERCEPT, POLICY_TLS_PASSTHROUGH, POLICY_TLS_OPAQUE };
/* PASSTHROUGH: a tls: passthrough rule decides; INTERCEPT: some https rule could allow a request (or mode observe);
 * OPAQUE: only a tcp:// rule names it, TLS bytes are relayed unopened; REFUSE: nothing could be allowed.
 * request->scheme and method are ignored; decision says which rule. */
enum policy_tls policy_decide_tls(const struct policy *policy, const struct policy_request *request,
	struct policy_decision *out);
/* True where a connection for a request of https or http is relayed unread: only a tcp:// rule allows the place, so
 * neither the request nor a deny rule for some requests counts. *out is then that rule's decision. As the proxy meets
 * it on a connection to the place itself; a plain http request that the sandbox puts to a proxy is read and judged. */
bool policy_relays_unread(const struct policy *policy, const struct policy_request *request,
	struct policy_decision *out);
/* True where some rule (allow or deny) names the host under any scheme or port: leaf certificates are minted freely
 * only for these. */
bool policy_mentions_host(const struct policy *policy, struct slice host);
/* The credentials that some allow rule attaches at the request's scheme, host and port, whatever method and path: bit i
 * is credential i. 0 where the request cannot be judged. */
uint64_t policy_credentials_at(const struct policy *policy, const struct policy_request *request);

struct slice policy_name(const struct policy *policy);
enum policy_mode policy_mode(const struct policy *policy);
/* Hex digest of the image, 16 digits: "which policy was in force" in the audit log. */
struct slice policy_fingerprint(const struct policy *policy);
uint32_t policy_rule_count(const struct policy *policy);
struct slice policy_rule_name(const struct policy *policy, uint32_t rule);
/* The deny rule's reason text, or empty. */
struct slice policy_rule_text(const struct policy *policy, uint32_t rule);
/* The protocols that a connection may be upgraded to by a request that the rule allows, and is relayed unread then: in
 * lower case, with ", " between them; or empty. */
struct slice policy_rule_upgrades(const struct policy *policy, uint32_t rule);
/* True where the protocol ("name" or "name/version", in whatever case) is one of them. */
bool policy_rule_allows_upgrade(const struct policy *policy, uint32_t rule, struct slice protocol);
/* Ports that udp:// allow rules name: for the fence and the listeners. Returns the count, at most max are written. */
size_t policy_udp_ports(const struct policy *policy, uint16_t *out, size_t max);
#define POLICY_UDP_PORTS_MAX 64 /* the loader refuses more */
/* TCP ports the worker may need to dial (allow rules of https, http, tcp): for Landlock. Returns the count, at most max
 * are written; or SIZE_MAX where every port may be needed, as in mode observe, which lets any port pass. */
size_t policy_tcp_ports(const struct policy *policy, uint16_t *out, size_t max);

enum policy_inject { POLICY_INJECT_BEARER, POLICY_INJECT_BASIC, POLICY_INJECT_HEADER, POLICY_INJECT_QUERY };
enum policy_source { POLICY_SOURCE_FILE, POLICY_SOURCE_ENV, POLICY_SOURCE_EXEC };

#define POLICY_ARGV_MAX 32

struct policy_credential {
	struct slice name;
	enum policy_inject inject;
	struct slice field;       /* header: field name; query: parameter name; else empty */
	struct slice prefix;      /* header: put before the value ("token "); else empty */
	struct slice username;    /* basic: with it the value is the password; without, the value is "user:password" */
	struct slice env;         /* variable that shows a placeholder inside the sandbox, or empty */
	struct slice placeholder; /* its shape, START...END (policy/placeholder.h), or empty: as the variable's name has it */
	uint32_t placeholder_n;   /* bytes of a placeholder of that shape */
	enum policy_source source;
	struct slice location;    /* file: absolute path; env: variable name */
	size_t argc;              /* exec: number of argv entries, else 0 */
	struct slice argv[POLICY_ARGV_MAX];
	uint32_t ttl_s;           /* how long a value is used before it is read again; 0: for the whole run */
	uint32_t timeout_ms;      /* exec: how long the program may take */
};

uint32_t policy_credential_count(const struct policy *policy);
void policy_credential(const struct policy *policy, uint32_t index, struct policy_credential *out);
/* True where credential i of a and credential j of b are the same in every respect. */
bool policy_credential_equals(const struct policy *a, uint32_t i, const struct policy *b, uint32_t j);

/* "file:/path", "env:NAME" or "exec:[program, ...]", without the arguments, cut where it is long. out. */
#define POLICY_SOURCE_TEXT_MAX 512
const char *policy_source_text(const struct policy_credential *credential, char out[POLICY_SOURCE_TEXT_MAX]);

const char *policy_scheme_name(enum policy_scheme scheme);
const char *policy_reason_text(enum policy_reason reason);
uint16_t policy_scheme_default_port(enum policy_scheme scheme); /* 443, 80, or 0: must be named */

#endif
