/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy: the compiled policy and the one pure decision function. The proxy, the DNS responder, the compiler of
 * kernel rules and every `vethguard policy` command use this function and no other.
 *
 * A compiled policy is an image: one flat run of bytes with offsets instead of pointers. The loader (policy/load.h)
 * builds it once; workers share it read-only through a sealed memfd, so a thousand sandboxes under one policy share
 * its pages. Nothing in an image is secret.
 */
#ifndef VETHGUARD_POLICY_POLICY_H
#define VETHGUARD_POLICY_POLICY_H

#include "vethguard/base/ip.h"
#include "vethguard/base/slice.h"
#include "vethguard/dlp/formats.h"

#define POLICY_HOST_MAX 253   /* bytes of a host name (RFC 1035 section 2.3.4) */
#define POLICY_NAME_MAX 64    /* bytes of a policy, rule or credential name */
#define POLICY_PATH_MAX 8192  /* bytes of a path pattern or a canonical path */
#define POLICY_METHOD_MAX 32  /* bytes of a method */
#define POLICY_QUERY_MAX 8192 /* bytes of a query that conditions are compared with */
#define POLICY_VALUE_MAX 256  /* bytes of a name or pattern of a condition */
#define POLICY_CREDENTIALS_MAX 64
#define POLICY_RULES_MAX 250000
#define POLICY_IMAGE_MAX (256u << 20) /* bytes */
#define POLICY_UPGRADE_MAX 64         /* bytes of the name of a protocol to upgrade to */
#define POLICY_NONE UINT32_MAX        /* no rule, no credential */
/* The host name at which vethguard itself answers the sandbox's questions. No rule decides about this name. */
#define POLICY_OWN_HOST "vethguard.internal"
#define POLICY_LAYER_MARK ':' /* follows "floor" or "infrastructure" in the names of their rules */

enum policy_scheme { POLICY_HTTPS, POLICY_HTTP, POLICY_TCP, POLICY_UDP, POLICY_SCHEME_COUNT };
enum policy_verdict { POLICY_DENY, POLICY_ALLOW };
enum policy_mode { POLICY_ENFORCE, POLICY_OBSERVE };

/* Who wrote the rule that decided: the policy's author, or the organisation (under allow: and deny: of its floor, or
 * under infrastructure: of the same file). See policy/load.h. */
enum policy_layer {
	POLICY_LAYER_POLICY = 0,
	POLICY_LAYER_FLOOR = 1,
	POLICY_LAYER_INFRASTRUCTURE = 2,
	POLICY_LAYER_COUNT
};

/* Why a decision came out as it did. */
enum policy_reason {
	POLICY_REASON_RULE = 0,        /* the rule in decision.rule decided */
	POLICY_REASON_DEFAULT = 1,     /* no rule mentions the destination */
	POLICY_REASON_PORT = 2,        /* a rule names the host, but not this port or scheme */
	POLICY_REASON_METHOD = 3,      /* rules match the destination; none has this method, or only rules of
	                              other methods allow the path */
	POLICY_REASON_PATH = 4,        /* rules match destination and method; none matches the path */
	POLICY_REASON_READING = 5,     /* an allow rule matches the path as written, but not as some servers read
	                              it */
	POLICY_REASON_BAD_REQUEST = 6, /* the request cannot be judged (no host, path not canonical) */
	POLICY_REASON_UPGRADE = 7,     /* the rule allows the request, but not the upgrade it asks for */
	POLICY_REASON_FOREIGN = 8,     /* the rule allows the request, but not with a credential of its own */
	POLICY_REASON_SIGNATURE = 9,   /* the rule allows the request, but not the signature that it asks for */
	POLICY_REASON_CONDITION = 10,  /* rules allow destination, method and path, but the query, a header field or the
	                                  body does not meet their conditions */
	POLICY_REASON_LEAK = 11,       /* the request carries a placeholder to where the placeholder does not belong */
	POLICY_REASON_SECRET = 12,     /* the request carries a secret (dlp) */
	POLICY_REASON_CALLBACK = 13,   /* another proxy asks about the request, but does not tell enough of it, or
	                                  could not carry the decision out */
	POLICY_REASON_FLOOR = 14,      /* the policy allows the request, but no allow rule of the floor does */
	POLICY_REASON_SCOPE = 15,      /* the rule allows the request, but its credential (docker-registry) does not
	                                  name the repository or the action */
	POLICY_REASON_COUNT
};

struct policy_field {
	struct slice name, value;
};

/* The header fields of a request that are sent on. */
struct policy_fields {
	const void *context;
	/* Fills *out with the field at *at and moves on. Returns false at the end. */
	bool (*next)(const void *context, size_t *at, struct policy_field *out);
};

struct policy_body;    /* policy/body.h */
struct policy_refusal; /* policy/refusal.h */

/* The question. Slices are borrowed for the call. */
struct policy_request {
	enum policy_scheme scheme;
	struct slice host; /* canonical: lower case, no trailing dot, A-labels; empty if only an address is known */
	struct ip address; /* destination address literal (from the URL, or dialed directly); family 0: none */
	uint16_t port;
	struct slice method; /* as sent (case-sensitive); empty: judge the connection only (any method, any path) */
	struct slice path;   /* canonical, no query; begins with '/'; ignored without a method */
	struct slice query;  /* as sent, without '?' */
	const struct policy_fields *fields; /* NULL: none */
	const struct policy_body *body;     /* NULL: the request has none */
	const struct slice *tool;           /* NULL, or the body may be any call of this MCP tool: policy_may_call() */
	struct policy_refusal *refusal;     /* NULL, or where allow rules note what they refuse: policy/refusal.h */
};

struct policy_decision {
	enum policy_verdict verdict;
	enum policy_reason reason;
	uint32_t rule;       /* index for policy_rule_*(), or POLICY_NONE */
	uint32_t credential; /* index for policy_credential(), or POLICY_NONE; of a connection, only over tcp */
	bool seals;          /* tokens in the answer become placeholders, and go into that credential */
	bool passthrough;    /* the allowing rule says tls: passthrough */
	bool asks;           /* allowed only if a person approves it: an ask rule decided */
	bool needs_body;     /* the verdict depends on a body that was not read yet; until then it is a denial */
	bool observed;       /* mode observe turned a denial into this allow; reason and rule are the denial's */
	bool names_address;  /* the allowing rule names the destination as an address or network and means it
	                        (ip_network_means), so it may be dialed whatever its address class */
	bool names_exactly;  /* the allowing rule names exactly this address, so it may be dialed even if it is the
	                        host's own */
	bool lists_tools;    /* a rule with mcp matches this destination and path: take the tools that may not be
	                        called out of lists of tools in the answer */
	bool inquires;       /* the request is for POLICY_OWN_HOST: vethguard answers it, and nothing leaves */
	bool needs_messages; /* a rule with mcp or graphql matches this destination and path: do not upgrade the
	                        connection (WebSocket or other), since no rule would judge what follows */
	uint32_t floor_rule; /* 1 + the index of the floor's allow rule that let the request pass, in the policy that
	                        policy_floor() opens; 0: none was needed */
	const char *why;     /* for POLICY_REASON_SCOPE one static sentence; else NULL */
};

/* An opened image. Filled by policy_open(); borrows the bytes. */
struct policy {
	const uint8_t *image;
	size_t size;
};

/* Checks the whole image (magic, version, every offset and count), so that later calls need no check. Returns 0 or
 * -EBADMSG. */
int policy_open(struct policy *policy, const void *image, size_t size);

/* Decides one request. Pure, total, allocates nothing; the cost does not grow with the number of exact hosts.
 * - Deny beats ask, and ask beats allow.
 * - The most specific allow rule names the credential: host before glob before address, then the longer literal path;
 *   of equals, a rule with a credential before one without.
 * - Deny rules are generous: a tcp:// deny rule denies everything over TCP at that destination, methods are compared
 *   without regard to case, and every spelling of a path that some server reads as a denied path is denied.
 * - An allow rule does not match a path that some server may read as a path outside of the rule.
 * - Conditions on query, header fields and body are judged the same way: an allow rule refuses what is ambiguous, a
 *   deny rule denies it.
 * - In mode observe every denial, a deny rule's too, becomes an allow with observed set, no credential and no
 *   passthrough. A request that cannot be judged (POLICY_REASON_BAD_REQUEST) stays denied, and so does what the floor
 *   refuses.
 * - If the policy has layers: a deny rule of the floor beats everything; then a rule of the infrastructure allows what
 *   it matches; else the policy decides. If the floor has allow:, what the policy allows has to match one of the
 *   floor's allow rules too. */
void policy_decide(const struct policy *policy, const struct policy_request *request, struct policy_decision *out);

/* How to treat an intercepted TLS connection to host (SNI) and port before any request is known. */
enum policy_tls { POLICY_TLS_REFUSE, POLICY_TLS_INTERCEPT, POLICY_TLS_PASSTHROUGH, POLICY_TLS_OPAQUE };
/* Decides how to treat a TLS connection. request->scheme and method are ignored; *out names the rule.
 * - PASSTHROUGH: a tls: passthrough rule decides.
 * - INTERCEPT: some https rule could allow a request, or the mode is observe.
 * - OPAQUE: only a tcp:// rule names the destination; TLS bytes are relayed unopened.
 * - REFUSE: nothing could be allowed. */
enum policy_tls policy_decide_tls(
        const struct policy *policy, const struct policy_request *request, struct policy_decision *out);
/* True if a connection for an https or http request is relayed unread: only a tcp:// rule allows the destination, so
 * neither the request nor a deny rule for some requests counts. *out is then that rule's decision. This holds for a
 * connection to the destination itself; a plain http request that the sandbox sends to the explicit proxy is read and
 * judged. */
bool policy_relays_unread(
        const struct policy *policy, const struct policy_request *request, struct policy_decision *out);
/* True if some rule (allow or deny) names the host under any scheme or port. Leaf certificates are minted without the
 * limit for unmentioned names only for such hosts. */
bool policy_mentions_host(const struct policy *policy, struct slice host);
/* The credentials that some allow rule attaches at the request's scheme, host and port, for any method and path: bit
 * i stands for credential i. 0 if the request cannot be judged. */
uint64_t policy_credentials_at(const struct policy *policy, const struct policy_request *request);

/* True if some call of the MCP tool may pass that is sent as a POST and otherwise like the request. The request's
 * method and body do not count. */
bool policy_may_call(const struct policy *policy, const struct policy_request *request, struct slice tool);

/* True if some rule has a condition on a header field of that name, or of a name that a server may take for it. */
bool policy_names_field(const struct policy *policy, struct slice name);

/* Returns whose rule decided: the floor's for POLICY_REASON_FLOOR, else that of decision->rule. */
enum policy_layer policy_decision_layer(const struct policy *policy, const struct policy_decision *decision);
/* Returns who wrote the rule (POLICY_NONE: the policy's author). */
enum policy_layer policy_rule_layer(const struct policy *policy, uint32_t rule);
/* Returns "policy", "floor" or "infrastructure". */
const char *policy_layer_name(enum policy_layer layer);
/* Opens the floor's allow rules as a policy of their own, which borrows the bytes of policy. Returns false if nothing
 * bounds the policy: there is no floor, or the floor has no allow:. */
bool policy_floor(const struct policy *policy, struct policy *out);
/* Opens the infrastructure's rules and the floor's deny rules in the same way. They have the same indices in both
 * policies. Returns false if there are no rules of the infrastructure. */
bool policy_infrastructure(const struct policy *policy, struct policy *out);
/* True if the policy was loaded with a floor that has rules or limits. */
bool policy_has_layers(const struct policy *policy);

struct slice policy_name(const struct policy *policy);
enum policy_mode policy_mode(const struct policy *policy);
/* True if vethguard answers the sandbox at POLICY_OWN_HOST. Otherwise the name is refused like one that no rule names.
 */
bool policy_answers(const struct policy *policy);
/* True if the policy refuses a request that carries a placeholder to where the placeholder does not belong. False in
 * mode observe and with on_leak: alert. */
bool policy_refuses_leaks(const struct policy *policy);
/* Writes what the policy says about secrets in requests that the rule decides; rule POLICY_NONE: in requests that no
 * rule decides (mode observe lets them pass). In mode observe DLP_BLOCK becomes DLP_ALERT. Returns at once if the
 * policy does not look for secrets. */
void policy_dlp(const struct policy *policy, uint32_t rule, struct dlp_settings *out);
/* Writes a text such as "alert, except jwt, aws-access-key" into out, cut if it is too long. Returns out. */
#define POLICY_DLP_TEXT_MAX 1024
const char *policy_dlp_text(const struct dlp_settings *settings, char out[POLICY_DLP_TEXT_MAX]);
/* Hex digest of the image, 16 digits: tells in the audit log which policy was in force. */
struct slice policy_fingerprint(const struct policy *policy);
uint32_t policy_rule_count(const struct policy *policy);
struct slice policy_rule_name(const struct policy *policy, uint32_t rule);
/* The deny rule's reason text, or empty. */
struct slice policy_rule_text(const struct policy *policy, uint32_t rule);
/* Returns the rule's destinations as written. */
struct slice policy_rule_to(const struct policy *policy, uint32_t rule);
/* Returns the credential that the rule attaches, or POLICY_NONE. */
uint32_t policy_rule_credential(const struct policy *policy, uint32_t rule);
/* Returns for how many seconds a request is held until a person answers; 0: the rule is no ask rule. */
uint32_t policy_rule_wait_s(const struct policy *policy, uint32_t rule);
#define POLICY_ASK_WAIT_S 300 /* the default */
#define POLICY_ASK_WAIT_MAX_S 86400
/* The protocols that a request which the rule allows may upgrade the connection to (the connection is then relayed
 * unread): in lower case, separated by ", "; or empty. */
struct slice policy_rule_upgrades(const struct policy *policy, uint32_t rule);
/* True if the protocol ("name" or "name/version", in any letter case) is one of these. */
bool policy_rule_allows_upgrade(const struct policy *policy, uint32_t rule, struct slice protocol);
/* True if the rule that decided allows upgrades to the protocol, and so does the floor's rule, if one was needed. */
bool policy_allows_upgrade(const struct policy *policy, const struct policy_decision *decision, struct slice protocol);
/* One destination of allow rules, of any scheme. */
struct policy_named {
	struct slice host;        /* a name; empty: the network */
	bool below;               /* the names below host, not host itself */
	struct ip_prefix network; /* of one address, or of many */
};
/* Writes the destination with this index and returns true; false: there is none with it or a greater index. *index is
 * set to the next one. */
bool policy_named_next(const struct policy *policy, uint32_t *index, struct policy_named *out);
/* The ports that udp:// allow rules name, for the fence and the listeners. Writes at most max; returns the count. */
size_t policy_udp_ports(const struct policy *policy, uint16_t *out, size_t max);
#define POLICY_UDP_PORTS_MAX 64 /* the loader refuses more */
/* TCP ports the worker may need to dial (allow rules of https, http, tcp), for Landlock. Writes at most max; returns
 * the count, or SIZE_MAX if any port may be needed, as in mode observe. */
size_t policy_tcp_ports(const struct policy *policy, uint16_t *out, size_t max);

enum policy_inject {
	POLICY_INJECT_BEARER,
	POLICY_INJECT_BASIC,
	POLICY_INJECT_HEADER,
	POLICY_INJECT_QUERY,
	POLICY_INJECT_COOKIE,
	POLICY_INJECT_SIGV4,
	POLICY_INJECT_HMAC, /* policy_hmac() */
	POLICY_INJECT_PLACEHOLDER,
	POLICY_INJECT_CLIENT_CERTIFICATE, /* the upstream's TLS handshake shows it; the value is PEM */
	POLICY_INJECT_POSTGRES,           /* the login of a tcp:// connection that speaks PostgreSQL's protocol */
	POLICY_INJECT_DOCKER_REGISTRY, /* the login at a registry's token service, and its tokens: policy/registry.h */
	POLICY_INJECT_FIELDS,          /* header, with several fields and templates: policy_field_next() */
	POLICY_INJECT_COUNT
};
enum policy_source {
	POLICY_SOURCE_FILE,
	POLICY_SOURCE_ENV,
	POLICY_SOURCE_EXEC,
	POLICY_SOURCE_FETCH,   /* a service that is asked over HTTPS */
	POLICY_SOURCE_SYSTEMD, /* a file of the daemon's credentials directory (systemd.exec(5)) */
	POLICY_SOURCE_SEALED,  /* what answers to requests of the sandbox's own logins gave (rules with seal) */
	POLICY_SOURCE_COUNT
};

#define POLICY_ARGV_MAX 32
#define POLICY_ROLE_MAX 63 /* bytes of a PostgreSQL user's name */

struct policy_credential {
	struct slice name;
	enum policy_inject inject;
	struct slice field;       /* header: field name; query: parameter; cookie: its name; sigv4: the regions,
	                             sorted, with a space between; docker-registry: policy_registry(); else empty
	                             (fields: policy_field_next()) */
	struct slice prefix;      /* header: put before the value ("token "); sigv4: the services, as the regions;
	                             else empty */
	struct slice username;    /* basic, docker-registry: if set, the value is the password; else "user:password";
	                             fields: what ${username} stands for; postgres: the user who logs in */
	struct slice env;         /* variable that shows a placeholder inside the sandbox, or empty */
	struct slice placeholder; /* shape START...END (policy/placeholder.h); empty: the shape follows from env */
	uint32_t placeholder_n;   /* bytes of a placeholder of that shape */
	bool require;             /* a request with this credential may bring no other one */
	enum policy_source source;
	struct slice location; /* file: absolute path; env: variable name; fetch: the service's URL; systemd: name */
	/* exec: the program and its arguments. fetch: "vault", "oauth2", ..., then "KEY=VALUE" each, where a
	 * value from a file is "KEY=file:/ABSOLUTE/PATH". */
	size_t argc;
	struct slice argv[POLICY_ARGV_MAX];
	uint32_t ttl_s;      /* how long a value is used before it is read again; 0: for the whole run */
	uint32_t timeout_ms; /* exec, fetch: how long that may take */
};

uint32_t policy_credential_count(const struct policy *policy);
void policy_credential(const struct policy *policy, uint32_t index, struct policy_credential *out);
/* True if credential i of a and credential j of b are the same in every respect. */
bool policy_credential_equals(const struct policy *a, uint32_t i, const struct policy *b, uint32_t j);

/* sigv4: the regions and services that a request may be signed for. */
#define POLICY_SCOPE_NAMES_MAX 32 /* regions, or services, of one credential */
#define POLICY_REGION_MAX 32      /* bytes */
#define POLICY_SERVICE_MAX 64
/* True for 1 to max letters, digits, '-', '_' and '.'. */
bool policy_is_scope_name(struct slice name, size_t max);
/* True if the credential names both the region and the service. */
bool policy_signs_for(const struct policy_credential *credential, struct slice region, struct slice service);
/* True if the credential names exactly one region and one service: a request that names none is signed for these. */
bool policy_signs_for_one(const struct policy_credential *credential);

/* fields: takes the next field off rest; set rest to the credential's prefix before the first call. Returns false at
 * the end. */
#define POLICY_FIELDS_MAX 8
#define POLICY_TEMPLATE_PIECES_MAX 32
bool policy_field_next(struct slice *rest, struct slice *name, struct slice *template);
/* placeholder: true if the credential's placeholder is replaced there: "header", "basic", "query". */
bool policy_replaces_in(const struct policy_credential *credential, struct slice place);
/* hmac: how a request is signed. Its fields are those of policy_field_next(). */
struct policy_hmac {
	bool base64; /* the signature is sent in base64, else in hex digits */
	enum { POLICY_SECRET_TEXT, POLICY_SECRET_BASE64, POLICY_SECRET_HEX } secret;
	struct slice query; /* the parameter with the signature, or empty */
	struct slice sign;  /* template of what is signed */
};
void policy_hmac(const struct policy_credential *credential, struct policy_hmac *out);
/* Takes the next piece off a template: a literal text (name is empty), or the NAME of "${NAME}". A '$' without a brace
 * is an ordinary character. Returns false at the end, and at a "${" without its "}"; then rest begins with that "${".
 */
bool policy_template_next(struct slice *rest, struct slice *literal, struct slice *name);

/* The i-th file that the credential's source reads, of at most POLICY_ARGV_MAX. Returns false beyond the last one. */
bool policy_credential_file(const struct policy_credential *credential, size_t i, struct slice *path);

/* True for a service's argument "KEY=file:PATH" whose key names a file (token, key, ...); "scope=file:read" is none. */
bool policy_argument_is_file(struct slice argument, struct slice *path);
/* True for a service's argument "KEY_url=URL". */
bool policy_argument_is_url(struct slice argument, struct slice *url);

/* Writes "file:/path", "env:NAME", "systemd:NAME", "vault:https://host" or "exec:[program, ...]" (without the
 * arguments) into out, cut if too long. Returns out. */
#define POLICY_SOURCE_TEXT_MAX 512
const char *policy_source_text(const struct policy_credential *credential, char out[POLICY_SOURCE_TEXT_MAX]);

/* Writes how the value is sent: "Authorization: Bearer ***", "?key=***", ... into out, cut if too long. Returns out. */
#define POLICY_INJECT_TEXT_MAX 512
const char *policy_inject_text(const struct policy_credential *credential, char out[POLICY_INJECT_TEXT_MAX]);

const char *policy_scheme_name(enum policy_scheme scheme);
const char *policy_reason_text(enum policy_reason reason);
uint16_t policy_scheme_default_port(enum policy_scheme scheme); /* 443, 80, or 0: a port must be named */

#endif
