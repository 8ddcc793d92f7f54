/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image: the layout of a compiled policy. compile.c writes it, policy_open() in image.c checks it,
 * everything else reads it.
 *
 * A header, then sections: arrays of fixed structs in the machine's byte order, each aligned to 8.
 * Texts are runs in the strings section. A decision walks it like this:
 *
 *   host ----hash----> target (exact host, glob suffix or prefix) ---> profile
 *   profile: the entries (rule, scheme, ports) that name such a destination, in the rule's `to` or
 *            in its `except`; hosts with the same entries share one
 *   profile + literal start of the path ----hash----> node ---> candidates (entry, path pattern);
 *            denies have nodes of their own, found by the shortest reading of the path
 */
#ifndef VETHGUARD_SRC_POLICY_IMAGE_IMAGE_H
#define VETHGUARD_SRC_POLICY_IMAGE_IMAGE_H

#include "vethguard/base/hash.h"
#include "vethguard/policy/policy.h"
#include "vethguard/wire/token_meter.h"

#define IMAGE_MAGIC "vgpolicy"
#define IMAGE_VERSION 9u
#define IMAGE_ALIGN 8u
#define IMAGE_FINGERPRINT 16
#define IMAGE_METHODS_MAX 64   /* distinct methods of one policy: one bit each */
#define IMAGE_DEPTH_MAX 31     /* most segments of a literal start in the path index */
#define IMAGE_LABELS_MAX 127   /* labels of a host name */
#define IMAGE_PREFIX_KEY 18    /* family, bits, 16 bytes of address */
#define IMAGE_EMPTY UINT32_MAX /* a free slot */

enum image_section_id {
	SECTION_STRINGS,
	SECTION_RULES,
	SECTION_ENTRIES,
	SECTION_RANGES,
	SECTION_METHODS,
	SECTION_PATTERNS,
	SECTION_PROFILES,
	SECTION_REFS,
	SECTION_TARGETS,
	SECTION_NODES,
	SECTION_CANDIDATES,
	SECTION_CREDENTIALS,
	SECTION_ARGS,
	SECTION_CONDITIONS,
	SECTION_VALUES, /* struct image_text: patterns for values, of conditions */
	SECTION_EXPOSES,
	SECTION_FROMS,
	SECTION_LIMITS,
	SECTION_DLPS,
	SECTION_TARGET_SLOTS, /* the hash tables come after the sections whose bytes the
	                         fingerprint covers: they depend on the key, it does not */
	SECTION_NODE_SLOTS,
	/* Whole images as bytes, in which these two sections are empty; or empty: */
	SECTION_FLOOR,          /* the floor's allow rules */
	SECTION_INFRASTRUCTURE, /* the infrastructure's rules and the floor's deny rules, which are
	                           also the first rules of this image */
	SECTION_COUNT
};

struct image_text {
	uint32_t at; /* in the strings section */
	uint32_t n;
};

struct image_section {
	uint32_t at; /* bytes from the image's start */
	uint32_t count;
};

struct image_header {
	char magic[8];
	uint32_t version;
	uint32_t size;   /* of the whole image, bytes */
	uint64_t k0, k1; /* of both hash tables */
	char fingerprint[IMAGE_FINGERPRINT];
	struct image_text name;
	uint32_t mode;
	uint32_t rule_count;                       /* without shadows */
	uint32_t inspect;                          /* bytes of a body that conditions may ask for */
	uint32_t leaks_pass;                       /* 1: on_leak is alert */
	uint32_t silent;                           /* 1: internal is off */
	uint32_t glob_labels_min, glob_labels_max; /* labels of the shortest and longest glob
	                                              suffix; max 0: no globs */
	uint32_t prefix4_bits[2]; /* bit N of the 64: some IPv4 prefix has N bits */
	uint32_t prefix6_bits[5];
	struct image_section sections[SECTION_COUNT];
};

enum image_rule_flag {
	RULE_DENY = 1,
	RULE_PASSTHROUGH = 2,
	RULE_METHODS = 4,
	RULE_PATHS = 8,
	RULE_EXCEPT = 16, /* some entry of the rule is an exception */
	RULE_CONDITIONS = 32,
	/* The rule stands under ask:. With RULE_DENY it is the shadow of an ask rule: a copy that
	 * matches, as deny rules do, every spelling of what the rule asks about. Shadows come after
	 * all rules. */
	RULE_ASK = 64,
	RULE_MCP = 128,     /* it has a condition on MCP messages */
	RULE_GRAPHQL = 256, /* ... on GraphQL requests */
	RULE_FLOOR = 1024,  /* a rule of the floor */
	RULE_INFRASTRUCTURE = 2048,
	RULE_TOKENS = 512, /* limits count the tokens of its answers: model_rule.counts_tokens */
};

struct image_rule {
	struct image_text name, text, to, file;
	uint64_t methods; /* bits by index in the methods section; valid with RULE_METHODS */
	uint32_t line;
	uint32_t flags;
	uint32_t credential; /* or POLICY_NONE */
	uint32_t first_pattern, pattern_count;
	struct image_text upgrades;   /* see policy_rule_upgrades() */
	struct image_text conditions; /* in words; equal for equal conditions */
	uint32_t first_condition, condition_count;
	uint32_t wait_s; /* RULE_ASK: seconds that a request is held; of a shadow: 1 + the index of
	                    its ask rule; else 0 */
	struct image_text
	        seals; /* in words, if answers are sealed into the credential; else empty */
	uint32_t token_weights[TOKEN_KINDS], token_prices[TOKEN_KINDS]; /* policy_rule_tokens() */
};

enum image_condition_kind {
	CONDITION_QUERY,
	CONDITION_QUERY_ONLY, /* no parameters except those that other conditions of the rule name
	                       */
	CONDITION_HEADER,
	CONDITION_FORM,
	CONDITION_FORM_ONLY,    /* as CONDITION_QUERY_ONLY, for a form */
	CONDITION_JSON,         /* the name is a path: policy/json/json_path.h */
	CONDITION_JSON_ONLY,    /* no keys but the first keys of other conditions' paths */
	CONDITION_JSONRPC,      /* as CONDITION_JSON, for each message of a JSON-RPC body */
	CONDITION_MCP,          /* values begin with enum image_mcp_value */
	CONDITION_MCP_ARGUMENT, /* as CONDITION_JSON, for the arguments of a call; judged with
	                           the rule's CONDITION_MCP */
	CONDITION_GRAPHQL,      /* values begin with enum image_graphql_value */
	CONDITION_LLM,          /* values begin with enum image_llm_value */
	CONDITION_GIT,          /* values begin with enum image_git_value */
	CONDITION_GRPC,         /* values begin with enum image_grpc_value */
	CONDITION_KIND_COUNT
};

/* The first byte of a value of CONDITION_MCP; the pattern of a name follows, or "block" or "off".
 */
enum image_mcp_value { MCP_VALUE_TOOL = 't', MCP_VALUE_METHOD = 'm', MCP_VALUE_DESCRIPTIONS = 'd' };

/* The first byte of a value of CONDITION_GRAPHQL; a keyword, the pattern of a name, or the pattern
 * of a hash or id follows. */
enum image_graphql_value {
	GRAPHQL_VALUE_OPERATION = 'o',
	GRAPHQL_VALUE_FIELD = 'f',
	GRAPHQL_VALUE_PERSISTED = 'p'
};

/* The first byte of a value of CONDITION_LLM; the pattern of a model's name, or a decimal number
 * follows. */
enum image_llm_value { LLM_VALUE_MODEL = 'm', LLM_VALUE_TOKENS = 'n' };

/* The first byte of a value of CONDITION_GIT. The value of a repository is, with this byte, the
 * pattern of its path. For PUSH and OPTION the pattern of a ref or a push option follows. For the
 * others, what follows does not count. */
enum image_git_value {
	GIT_VALUE_REPOSITORY = '/',
	GIT_VALUE_PUSH = 'p',
	GIT_VALUE_OPTION = 'o',
	GIT_VALUE_FORCE = 'f',
	GIT_VALUE_DELETE = 'd',
	GIT_VALUE_TAGS = 't'
};

/* The first byte of a value of CONDITION_GRPC; the pattern of a name follows. */
enum image_grpc_value { GRPC_VALUE_SERVICE = 's', GRPC_VALUE_METHOD = 'm' };

static inline bool condition_is_json(uint32_t kind)
{
	return kind == CONDITION_JSON || kind == CONDITION_JSONRPC ||
	       kind == CONDITION_MCP_ARGUMENT;
}

static inline bool condition_reads_body(uint32_t kind)
{
	return kind >= CONDITION_FORM && kind != CONDITION_GRPC;
}

enum image_condition_need { CONDITION_VALUE, CONDITION_ABSENT, CONDITION_NEED_COUNT };

struct image_condition {
	struct image_text name; /* decoded; of ..._ONLY empty */
	uint32_t kind, need;
	uint32_t first_value, value_count; /* one of them must match */
};

struct image_entry {
	uint32_t rule;
	uint32_t scheme;
	uint32_t first_range, range_count;
	uint32_t except; /* 1: the rule does not hold here; 0: it does */
};

struct image_range {
	uint16_t low, high; /* both included */
};

struct image_pattern {
	struct image_text text;
	struct image_text reading; /* of a deny: its full form; of an allow: its shortest form */
	uint32_t rank;             /* greater: more specific */
	uint32_t simple;           /* 1: the pattern is its own full form */
};

struct image_starts {
	uint32_t depths;  /* bit D: some node has a literal start of D segments */
	uint32_t longest; /* bytes of the longest literal start */
};

struct image_profile {
	uint32_t first_ref,
	        ref_count; /* in the order: denies of the connection, other denies, allows */
	uint32_t deny_connection, deny; /* counts; deny_connection is a part of deny */
	uint32_t except_count;          /* further refs after those: exceptions of denies */
	struct image_starts starts[2];  /* [0] of allows, [1] of denies */
};

enum image_target_kind { TARGET_HOST, TARGET_GLOB, TARGET_PREFIX, TARGET_KIND_COUNT };

struct image_target {
	struct image_text key; /* the host, the suffix without "*.", or IMAGE_PREFIX_KEY bytes */
	uint32_t kind;
	uint32_t profile;
};

struct image_node {
	struct image_text start; /* "" or "/seg/seg"; of denies in the shortest form */
	uint32_t profile;
	uint32_t deny; /* 1: the candidates are denies; 0: allows */
	uint32_t first_candidate, candidate_count;
};

struct image_candidate {
	uint32_t entry;
	uint32_t pattern; /* or POLICY_NONE: any path */
};

struct image_credential {
	struct image_text name, field, prefix, username;
	struct image_text
	        env; /* or "NAME SHAPE LENGTH" if the policy gives a shape for the placeholder */
	struct image_text location;
	uint32_t inject, source;
	uint32_t first_arg, arg_count;
	uint32_t ttl_s, timeout_ms;
	uint32_t require;
};

/* A port of the sandbox that is published, and one source that may reach it (policy/expose.h). */
struct image_expose {
	struct image_text name;
	struct image_text at; /* empty, or IMAGE_PREFIX_KEY bytes: one address */
	uint16_t port, at_port;
	uint32_t connections;
	uint32_t first_from, from_count;
};

struct image_from {
	struct image_text text;
	struct image_text network; /* IMAGE_PREFIX_KEY bytes, or empty */
	uint32_t kind;             /* enum policy_from_kind */
};

/* LIMIT_HOSTS: several hosts share it; with LIMIT_LOCAL each has its share while their server is
 * away. */
enum image_limit_flag { LIMIT_BUDGET = 1, LIMIT_FLOOR = 2, LIMIT_HOSTS = 4, LIMIT_LOCAL = 8 };

/* A limit (policy/limits.h). The policy's limits come first, then the rules' in the order of the
 * rules. */
struct image_limit {
	uint64_t amount;
	uint32_t rule; /* or POLICY_NONE */
	uint32_t kind, period_s;
	uint32_t flags; /* enum image_limit_flag */
	struct image_text shared;
};

/* What the policy (rule POLICY_NONE), or a rule with dlp of its own, says about secrets in
 * requests. The policy's comes first, then the rules' in their order. */
struct image_dlp {
	uint32_t rule;
	uint32_t mode; /* enum dlp_mode */
	struct dlp_set except;
};

struct image_slot {
	uint32_t tag;   /* high half of the hash */
	uint32_t index; /* of the target or node, or IMAGE_EMPTY */
};

extern const uint32_t image_element_size[SECTION_COUNT];

/* Checks an image as policy_open() does, except for the images inside of it. */
int image_open(struct policy *policy, const void *image, size_t size);

static inline const struct image_header *image_header(const struct policy *policy)
{
	return (const struct image_header *)policy->image;
}

static inline const void *image_section(const struct policy *policy, enum image_section_id id)
{
	return policy->image + image_header(policy)->sections[id].at;
}

static inline uint32_t image_count(const struct policy *policy, enum image_section_id id)
{
	return image_header(policy)->sections[id].count;
}

static inline struct slice image_slice(const struct policy *policy, struct image_text text)
{
	return slice_of((const char *)image_section(policy, SECTION_STRINGS) + text.at, text.n);
}

#define IMAGE_GETTER(name, id)                                                         \
	static inline const struct image_##name *image_##name##_at(                    \
	        const struct policy *policy, uint32_t index)                           \
	{                                                                              \
		return (const struct image_##name *)image_section(policy, id) + index; \
	}
IMAGE_GETTER(rule, SECTION_RULES)
IMAGE_GETTER(entry, SECTION_ENTRIES)
IMAGE_GETTER(range, SECTION_RANGES)
IMAGE_GETTER(pattern, SECTION_PATTERNS)
IMAGE_GETTER(profile, SECTION_PROFILES)
IMAGE_GETTER(target, SECTION_TARGETS)
IMAGE_GETTER(node, SECTION_NODES)
IMAGE_GETTER(candidate, SECTION_CANDIDATES)
IMAGE_GETTER(credential, SECTION_CREDENTIALS)
IMAGE_GETTER(condition, SECTION_CONDITIONS)
IMAGE_GETTER(expose, SECTION_EXPOSES)
IMAGE_GETTER(from, SECTION_FROMS)
IMAGE_GETTER(limit, SECTION_LIMITS)
IMAGE_GETTER(dlp, SECTION_DLPS)
#undef IMAGE_GETTER

static inline uint32_t image_ref_at(const struct policy *policy, uint32_t index)
{
	return ((const uint32_t *)image_section(policy, SECTION_REFS))[index];
}

static inline bool image_has_layers(const struct policy *policy)
{
	return (image_count(policy, SECTION_FLOOR) | image_count(policy, SECTION_INFRASTRUCTURE)) !=
	       0;
}

/* The hash keys for targets of a kind and for nodes of a profile. */
static inline struct hash_key image_target_key(const struct image_header *h, uint32_t kind)
{
	return (struct hash_key){h->k0 ^ kind, h->k1};
}

static inline struct hash_key image_node_key(
        const struct image_header *h, uint32_t profile, uint32_t deny)
{
	return (struct hash_key){
	        h->k0, h->k1 ^ (profile * UINT64_C(2) + deny + 1) * UINT64_C(0x9e3779b97f4a7c15)};
}

#endif
