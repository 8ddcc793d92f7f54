/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config: the operator's settings (YAML). Errors name file, line and column, as for policies. Every key has a
 * default; no file at all is a valid configuration.
 */
#ifndef VETHGUARD_POLICY_CONFIG_H
#define VETHGUARD_POLICY_CONFIG_H

#include <limits.h>

#include "vethguard/base/diag.h"
#include "vethguard/base/secret.h"
#include "vethguard/policy/load.h"

#define PROXY_PORT_DEFAULT 3128
#define CONFIG_SERVERS_MAX 8
#define CONFIG_SERVER_PORT 53
#define CONFIG_HOSTS_MAX 1024
#define CONFIG_PREFIXES_MAX 64
#define CONFIG_CA_FILES_MAX 16

struct config_server {
	struct ip address;
	uint16_t port; /* 0: CONFIG_SERVER_PORT */
};

struct config_host {
	char name[POLICY_HOST_MAX + 1]; /* canonical */
	struct ip address;              /* one entry per address */
};

/* Durations in milliseconds, sizes in bytes. The names are those of the YAML keys under limits: and timeouts:. */
struct config_limits {
	uint32_t connections;          /* client connections of one sandbox at a time */
	uint32_t upstream_connections; /* upstream connections of one sandbox */
	uint32_t upstream_idle;        /* idle upstream connections kept for reuse */
	uint32_t streams;              /* HTTP/2 streams, of all connections of the sandbox together */
	uint32_t udp_flows;
	uint32_t dns_names;             /* synthetic addresses kept per family */
	uint32_t leaf_certificates;     /* minted leaves kept */
	uint32_t header_bytes;          /* one HTTP head */
	uint32_t dns_queries_per_s;     /* answered; more: REFUSED; more than CONFIG_QUERIES_DROPPED times as many:
	                                   dropped */
	uint32_t blocked_mints_per_min; /* leaves for names that no rule mentions */
	uint32_t connections_per_s;     /* new connections of the sandbox; the first packets of more are dropped */
	uint32_t packet_copies_per_s;   /* copies of dropped packets, for the log; more are dropped without a copy,
	                                   and counted */
	uint32_t udp_datagrams_per_s;   /* for udp:// destinations; more are dropped and counted */
	uint32_t refusals_per_s;        /* requests answered without being forwarded; the answers to more wait their
	                                   turn */
};

#define CONFIG_QUERIES_DROPPED 2
#define CONFIG_WORKERS_MAX 16
/* Changes the limits to the part that one of several workers gets of those that each worker counts by itself. Names and
 * datagrams are the first worker's alone, and the fence bounds connections per second: these limits stay. */
void config_limits_divide(struct config_limits *limits, uint32_t workers);

struct config_timeouts {
	uint32_t hello_ms;    /* first bytes, TLS handshake with the sandbox */
	uint32_t header_ms;   /* request head from its first byte */
	uint32_t idle_ms;     /* keep-alive connection between requests; tunnel without traffic */
	uint32_t connect_ms;  /* TCP and TLS to one upstream address */
	uint32_t response_ms; /* upstream silent while a request is under way */
	uint32_t request_ms;  /* one exchange as a whole; 0: no limit */
	uint32_t resolve_ms;  /* one name */
	uint32_t udp_idle_ms;
};

#define CONFIG_INTERFACE_MAX 15 /* IFNAMSIZ without the NUL */
#define CONFIG_EGRESS_USER_MAX 128
#define CONFIG_EGRESS_PAIR_MAX 512 /* "user:password" */
#define CONFIG_EGRESS_ENCODED_MAX (3 * CONFIG_EGRESS_PAIR_MAX)

/* How upstreams are reached. */
struct config_egress {
	uint16_t proxy_port;                  /* 0: no proxy, upstreams are dialed directly */
	char proxy_host[POLICY_HOST_MAX + 1]; /* canonical; empty: proxy_address is set instead */
	struct ip proxy_address;
	bool resolve_local;                       /* true: vethguard resolves names; false: the proxy does */
	char interface[CONFIG_INTERFACE_MAX + 1]; /* empty: the routing table chooses */
	struct ip address4, address6;             /* source addresses; neither set: the routing table chooses; one
	                                             set: only its family is used */
};

/* The operator's own CA, for the daemon. Paths are absolute; empty: not given. */
#define CONFIG_TOKEN_TEXTS_MAX 8
#define CONFIG_TOKEN_BYTES 2048
#define CONFIG_TOKEN_ARGV_MAX 16
#define CONFIG_PIN_TIMEOUT_MS 10000
/* Texts in a row, each with its NUL. */
struct config_texts {
	size_t count, bytes;
	char text[CONFIG_TOKEN_BYTES];
};
/* A PKCS #11 token that holds a CA's key, or keys of client certificates. */
struct config_token {
	char label[33];                  /* of the token, if it has keys of client certificates; of a CA's: empty */
	char uri[1025];                  /* RFC 7512: the token, and which key of it a CA's is; empty: no token */
	char module[PATH_MAX];           /* the shared object */
	char user[33];                   /* empty: the default */
	char pin_file[PATH_MAX];         /* the file with the PIN; empty: pin_program gives it */
	struct config_texts pin_program; /* the program that prints the PIN, and its arguments */
	uint32_t pin_timeout_ms;
	struct config_texts environment; /* "NAME=VALUE", for the module */
	struct config_texts writable;    /* paths that the module may write to */
};

#define CONFIG_TOKENS_MAX 4

struct config_ca {
	struct config_token token;
	char root[PATH_MAX];        /* PEM: what sandboxes are to trust; empty: the daemon's own root */
	char certificate[PATH_MAX]; /* PEM: what signs, and what is above it; empty: the first certificate of root */
	char key[PATH_MAX];         /* PEM: its key; empty: `vethguard ca install` gives certificates */
	uint32_t overlap_s;         /* how long a CA that was replaced stays trusted */
	bool constrain_names;       /* workers' intermediates may sign for what their policy names, and nothing else */
};

struct buf;

#define CONFIG_HOOK_URL_MAX 1024
#define CONFIG_HOOK_TEXT_MAX 2048
#define CONFIG_HOOK_TIMEOUT_MS 10000 /* the default */
#define CONFIG_HOOK_TIMEOUT_MAX_MS 60000
/* An endpoint or program of the operator that is told about each question that waits for a person. */
struct config_hook {
	char url[CONFIG_HOOK_URL_MAX];   /* https; empty: none */
	struct config_texts program;     /* of a decider, instead of a URL: path and arguments; count 0: none */
	char user[33];                   /* the user as whom the program runs */
	char key_file[PATH_MAX];         /* the key that signs what is sent; empty: nothing is signed */
	char text[CONFIG_HOOK_TEXT_MAX]; /* JSON with ${...} in its strings; empty: all fields as JSON */
	uint32_t timeout_ms;
};
struct config_ask {
	struct config_hook webhook; /* is told about questions; its answer does not count */
	struct config_hook decider; /* answers questions, or leaves them to a person */
};
/* Appends the text to out, with each ${NAME} replaced by its value, escaped for a JSON string. value() writes the value
 * of a name to its out, or returns false if the name is unknown. Returns 0; -EINVAL: a name is unknown, or a "${" has
 * no "}"; or another -errno. */
int config_hook_fill(struct slice text, bool (*value)(void *context, struct slice name, struct slice *out),
        void *context, struct buf *out);

#define CONFIG_GATEWAY_LISTENERS_MAX 8
#define CONFIG_BALANCERS_MAX 16 /* networks of load balancers */

/* What clients speak at an address of the gateway. */
enum config_gateway_kind {
	CONFIG_GATEWAY_PLAIN = 0,       /* the same as CONFIG_GATEWAY_TLS, but unencrypted */
	CONFIG_GATEWAY_TLS = 1,         /* requests to a proxy, or to base URLs, over TLS */
	CONFIG_GATEWAY_TRANSPARENT = 2, /* TLS of clients that know no proxy; their addresses prove their sessions */
	CONFIG_GATEWAY_CALLBACKS = 3,   /* other proxies' questions about their requests, over TLS */
	CONFIG_GATEWAY_KIND_COUNT
};
/* True if the gateway shows its own certificate to clients of such a listener. */
static inline bool config_gateway_kind_has_tls(enum config_gateway_kind kind)
{
	return kind == CONFIG_GATEWAY_TLS || kind == CONFIG_GATEWAY_CALLBACKS;
}

struct config_gateway_listener {
	struct ip address;
	uint16_t port;
	enum config_gateway_kind kind;
};

#define CONFIG_GATEWAY_BASES_MAX 16
#define CONFIG_GATEWAY_AUTHORITY_MAX (POLICY_HOST_MAX + 6) /* host:port */

/* A name of the gateway that stands for another host. */
struct config_gateway_base {
	char name[POLICY_HOST_MAX + 1]; /* canonical */
	bool https;
	char authority[CONFIG_GATEWAY_AUTHORITY_MAX + 1]; /* canonical host, and the port if it is not the scheme's */
};

#define CONFIG_SIGNERS_MAX 8
#define CONFIG_SIGNER_NAME_MAX 24
#define CONFIG_AUDIENCES_MAX 4
#define CONFIG_CLAIM_MAX 127       /* bytes of a claim's name or path */
#define CONFIG_CLAIM_VALUE_MAX 255 /* bytes of a value that a rule compares, of issuer and audience */
#define CONFIG_SIGNER_RULES_MAX 16
#define CONFIG_SIGNER_CLAIMS_MAX 16 /* of one rule: conditions, variables, labels; each */
#define CONFIG_SIGNER_FROM_MAX 16   /* networks of one rule */

/* Signatures of tokens (RFC 7518 section 3.1, RFC 8037). */
enum config_algorithm { CONFIG_EDDSA = 0, CONFIG_ES256 = 1, CONFIG_RS256 = 2, CONFIG_ALGORITHM_COUNT };

/* What each token of a signer has to have. */
struct config_terms {
	char issuer[CONFIG_CLAIM_VALUE_MAX + 1]; /* claim iss */
	size_t audience_count;
	char audiences[CONFIG_AUDIENCES_MAX][CONFIG_CLAIM_VALUE_MAX + 1]; /* claim aud names one of them */
	uint8_t algorithms;                                               /* bit 1 << enum config_algorithm */
	uint32_t lifetime_s;                                              /* from now until exp, at most */
	bool callbacks; /* the signer signs callbacks and no tokens of sessions, so it has no rules */
};

/* A claim and what goes with it: the value that it has to have, or the variable or label that it becomes. */
struct config_claim {
	char claim[CONFIG_CLAIM_MAX + 1]; /* a name, or a JSON pointer (RFC 6901) */
	char text[CONFIG_CLAIM_VALUE_MAX + 1];
};

struct config_signer_rule {
	size_t when_count, var_count, label_count, from_count;
	struct config_claim when[CONFIG_SIGNER_CLAIMS_MAX]; /* a '*' at the end stands for anything */
	struct config_claim vars[CONFIG_SIGNER_CLAIMS_MAX], labels[CONFIG_SIGNER_CLAIMS_MAX];
	struct ip_prefix from[CONFIG_SIGNER_FROM_MAX]; /* none: from anywhere */
	char policy[PATH_MAX];
};

/* Who signs tokens of sessions, and what the claims of such a token mean. Zeroed before it is filled in, so that two
 * of them can be compared as memory. */
struct config_signer {
	char name[CONFIG_SIGNER_NAME_MAX + 1];
	struct config_terms terms;
	char keys[PATH_MAX];                /* path or https:// URL of a JSON Web Key Set (RFC 7517) */
	uint32_t refresh_s;                 /* seconds between two fetches of the URL; 0: keys is a path */
	char session[CONFIG_CLAIM_MAX + 1]; /* the claim that tells sessions apart */
	size_t rule_count;
	struct config_signer_rule rules[CONFIG_SIGNER_RULES_MAX]; /* the first that matches counts */
};

/* The gateway of the daemon, where the connections of sessions arrive. */
struct config_gateway {
	size_t listener_count; /* 0: there is no gateway */
	struct config_gateway_listener listeners[CONFIG_GATEWAY_LISTENERS_MAX];
	char certificate[PATH_MAX], key[PATH_MAX]; /* PEM; both are given if a listener speaks TLS */
	char name[POLICY_HOST_MAX + 1]; /* the host name by which clients reach it, canonical; empty: not given */
	uint32_t unauthenticated;       /* bound on simultaneous connections that have proved no session yet */
	uint32_t unauthenticated_per_address;
	uint32_t handshake_ms;                /* time that a connection has to prove its session */
	uint32_t keep_worker_ms;              /* time that a session without connections keeps its worker */
	bool client_certificates;             /* ask clients for a certificate, which may prove a session */
	uint16_t udp_first, udp_last;         /* ports for SOCKS5 UDP ASSOCIATE; 0: the kernel chooses each */
	struct ip udp_address4, udp_address6; /* told to clients instead of the address they reached; family 0: none */
	size_t balancer_count;
	struct ip_prefix balancers[CONFIG_BALANCERS_MAX]; /* each tells the client's address of its connections */
	size_t base_count;
	struct config_gateway_base bases[CONFIG_GATEWAY_BASES_MAX];
	size_t signer_count;
	struct config_signer *signers; /* owned */
};

/* Copies it. Returns 0 or -ENOMEM. */
int config_gateway_copy(struct config_gateway *out, const struct config_gateway *gateway);
void config_gateway_fini(struct config_gateway *gateway);
bool config_signers_equal(const struct config_gateway *a, const struct config_gateway *b);
/* "EdDSA", "ES256", "RS256". */
const char *config_algorithm_name(enum config_algorithm algorithm);

#define CONFIG_QUOTA_USER_MAX 128
#define CONFIG_QUOTA_DATABASE_MAX 15
#define CONFIG_QUOTA_HOSTS_MAX 10000

/* The server of budgets that several hosts share: Valkey or Redis. Zeroed before it is filled in, so that two of them
 * can be compared with memcmp(3). */
struct config_quota {
	char host[POLICY_HOST_MAX + 1]; /* canonical name, or an address as text; empty: no server is configured */
	struct ip address;              /* family 0: host is a name */
	uint16_t port;
	bool tls;
	uint32_t database;
	char user[CONFIG_QUOTA_USER_MAX + 1]; /* empty: the server's default user */
	char password_file[PATH_MAX];         /* empty: the server wants none */
	uint32_t hosts; /* among how many hosts a budget is divided while the server is away; 0: not said */
};

#define CONFIG_BUNDLES_MAX 4
#define CONFIG_BUNDLE_NAME_MAX 24 /* bytes */
#define CONFIG_BUNDLE_FILE_MAX 64 /* bytes of the name of a file in a bundle */
#define CONFIG_BUNDLE_KEYS_MAX 4

/* Where a signed bundle (bundle/signed_bundle.h) of policies, key sets and revocations comes from. The reader zeroes
 * each before filling it in, so that two of them can be compared with memcmp(3). */
struct config_bundle {
	char name[CONFIG_BUNDLE_NAME_MAX + 1];
	char source[PATH_MAX]; /* path or https:// URL */
	uint32_t refresh_s;    /* seconds between two fetches of the URL; 0: source is a path */
	size_t key_count;
	char keys[CONFIG_BUNDLE_KEYS_MAX][PATH_MAX]; /* PEM files of the public keys that may sign it */
};

/* True for 1 to CONFIG_BUNDLE_NAME_MAX lower-case letters, digits and '-', not beginning with '-'. */
bool config_bundle_is_name(struct slice name);
/* True for a name that a file of a bundle may have: at most CONFIG_BUNDLE_FILE_MAX letters, digits, '-', '_' and '.',
 * not beginning with '.', ending with ".yaml" (a policy) or ".jwks" (a key set). */
bool config_bundle_is_file(struct slice name);
/* Splits "bundle:NAME/FILE". Returns true if the text begins with "bundle:"; name and file are empty if it has another
 * form. */
bool config_bundle_split(struct slice text, struct slice *name, struct slice *file);

/* A position in the configuration file, from 1. */
struct config_place {
	unsigned line, column;
};

struct config {
	struct config_egress egress;
	struct config_place egress_place4, egress_place6; /* of address4 and address6 */
	char egress_user[CONFIG_EGRESS_USER_MAX + 1];     /* empty: no credentials are sent to the proxy */
	char egress_password_file[PATH_MAX];
	struct secret egress_password; /* owned; the password of the proxy's URL; empty: the one in
	                                  egress_password_file, or none */
	size_t server_count;           /* 0: the servers of /etc/resolv.conf */
	struct config_server servers[CONFIG_SERVERS_MAX];
	size_t host_count;
	struct config_host *hosts; /* owned */
	size_t ca_file_count;      /* trusted for upstreams in addition to the system store */
	char ca_files[CONFIG_CA_FILES_MAX][PATH_MAX];
	struct config_ca ca;
	size_t token_count;          /* with keys of client certificates */
	struct config_token *tokens; /* owned */
	struct config_gateway gateway;
	size_t bundle_count;
	struct config_bundle *bundles; /* owned */
	struct config_ask ask;
	struct config_quota quota;
	size_t permit_count; /* private ranges that names may resolve to */
	struct ip_prefix permit[CONFIG_PREFIXES_MAX];
	struct ip_prefix pool4;    /* link and synthetic addresses; at least /24 */
	struct ip_prefix pool6;    /* at least /64 */
	uint16_t proxy_port;       /* of the explicit proxy on the gate's address */
	bool watch;                /* the daemon reloads policies whose files change */
	char audit_file[PATH_MAX]; /* empty: the command's default */
	char floor[PATH_MAX];      /* the daemon's floor; empty: POLICY_FLOOR_PATH, if it exists */
	uint32_t workers;          /* processes that serve one sandbox, CONFIG_WORKERS_MAX at most */
	struct config_limits limits;
	struct config_timeouts timeouts;
};

const char *config_token_text(const struct config_texts *texts, size_t i); /* returns text i; i < count */
void config_init(struct config *config);                                   /* sets the defaults */
void config_fini(struct config *config);
/* Reads the file at path over the values in *config. Returns 0, -EINVAL with diags, or -ENOMEM. */
int config_load(const struct policy_reader *reader, const char *path, struct config *config, struct diag_list *diags);

#endif
