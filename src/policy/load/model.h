/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model: a policy after the loader read all its files: checked, names resolved, texts in one arena.
 * compile.c turns it into an image.
 */
#ifndef VETHGUARD_SRC_POLICY_LOAD_MODEL_H
#define VETHGUARD_SRC_POLICY_LOAD_MODEL_H

#include "vethguard/base/diag.h"
#include "vethguard/policy/expose.h"
#include "vethguard/policy/limits.h"
#include "policy/compile/intern.h"
#include "policy/image/image.h"
#include "policy/yaml/arena.h"

#define MODEL_PORTS_MAX 64             /* ranges of one rule */
#define MODEL_PATHS_MAX 10000          /* of one rule */
#define MODEL_UPGRADES_MAX 8           /* protocols of one rule */
#define MODEL_CONDITIONS_MAX 16        /* of one rule */
#define MODEL_VALUES_MAX 64            /* of one condition */
#define MODEL_DESTINATIONS_MAX 1000000 /* of one list */
#define MODEL_PAIRS_MAX 4000000        /* destinations of all rules */
#define MODEL_CANDIDATES_MAX 8000000   /* (destination profile, path) pairs */

struct mark {
	const char *file; /* in the arena */
	unsigned line, column;
};

struct model_destination {
	struct slice key;  /* byte 0: enum image_target_kind; then the target's key */
	struct slice text; /* as written */
	struct mark mark;
	enum policy_scheme scheme;
	bool is_public; /* written as "[public]" */
	uint16_t port;  /* 0: the rule's ports, or the scheme's default */
};

struct model_destinations {
	struct model_destination *items;
	size_t count;
};

/* A condition of a rule on the query, on a header field or on the body. */
struct model_condition {
	struct slice name;
	enum image_condition_kind kind;
	enum image_condition_need need;
	struct slice *values; /* patterns; of condition_is_json() as policy/json/json_path.h says */
	struct slice *written; /* of these: the same in words */
	size_t value_count;
};

struct model_lists {
	struct model_destinations *lists; /* those written in the rule, then one for each group */
	size_t count;
};

struct model_rule {
	struct slice name, to, reason;
	struct slice upgrades; /* as policy_rule_upgrades() */
	struct mark mark;
	bool deny, passthrough, has_methods;
	enum policy_layer layer;
	uint32_t wait_s; /* as in struct image_rule */
	bool seals;      /* answers are sealed into the credential */
	bool reported;   /* a conflict of this rule was reported */
	uint64_t methods;
	struct model_lists destinations;
	struct model_lists except; /* of a deny rule: the destinations that it does not hold for */
	struct image_range ports[MODEL_PORTS_MAX];
	size_t port_count;
	struct slice *paths;
	size_t path_count;
	struct model_condition *conditions; /* sorted by kind and name */
	size_t condition_count;
	struct slice conditions_text;                                   /* in words */
	uint32_t credential;                                            /* or POLICY_NONE */
	uint32_t token_weights[TOKEN_KINDS], token_prices[TOKEN_KINDS]; /* policy_rule_tokens() */
	bool counts_tokens; /* it has weights, prices, llm, or a limit of tokens or cost */
	bool has_dlp;       /* dlp is the rule's own */
	struct dlp_settings dlp;
};

/* True for the shadow of an ask rule (RULE_ASK in image.h). */
static inline bool model_is_shadow(const struct model_rule *rule)
{
	return rule->deny && rule->wait_s > 0;
}

/* True for a rule that limits requests and not only connections. */
static inline bool model_is_about_requests(const struct model_rule *rule)
{
	return rule->has_methods || rule->path_count > 0 || rule->condition_count > 0;
}

static inline bool model_has_condition(
        const struct model_rule *rule, enum image_condition_kind kind)
{
	for (size_t i = 0; i < rule->condition_count; i++)
		if (rule->conditions[i].kind == kind)
			return true;
	return false;
}

struct model_credential {
	struct policy_credential c;
	struct mark mark, source; /* the place of its name, and of its source */
	bool overridden;          /* an include gives the source, not the definition */
};

/* A published port. Texts are canonical. */
struct model_expose {
	struct slice name;
	struct mark mark;
	uint16_t port, at_port;
	struct ip at; /* family 0: none */
	uint32_t connections;
	size_t from_count;
	struct policy_from from[POLICY_EXPOSE_FROM_MAX];
};

struct model_limit {
	uint32_t rule; /* POLICY_NONE: the limit is the policy's */
	enum policy_limit_kind kind;
	uint64_t amount;
	uint32_t period_s;
	bool budget;
	bool floor;              /* the floor's, not the policy's */
	struct slice shared;     /* as struct policy_limit */
	enum policy_hosts hosts; /* as struct policy_limit */
};

/* A whole image that is put into another one. */
struct model_inner {
	uint8_t *image; /* owned by the loader; NULL: none */
	size_t size;
};

struct model {
	struct arena *arena;
	struct model_inner floor, infrastructure; /* for SECTION_FLOOR and SECTION_INFRASTRUCTURE */
	struct diag_list *diags;
	struct slice name;
	enum policy_mode mode;
	uint32_t inspect; /* bytes */
	bool leaks_pass;  /* on_leak: alert */
	bool silent;      /* internal: off */
	bool has_dlp;
	struct dlp_settings dlp;
	size_t method_count;
	struct slice methods[IMAGE_METHODS_MAX];
	struct vec rules;    /* struct model_rule; the shadows of ask rules come last */
	uint32_t rule_count; /* without shadows */
	size_t credential_count;
	struct model_credential credentials[POLICY_CREDENTIALS_MAX];
	size_t expose_count;
	struct model_expose exposes[POLICY_EXPOSES_MAX];
	size_t limit_count;
	struct model_limit limits[POLICY_LIMITS_MAX]; /* those of rules are in the rules' order */
};

#endif
