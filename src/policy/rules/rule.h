/* SPDX-License-Identifier: Apache-2.0 */
/* rule: the rules of a file, and one rule while the loader reads it. */
#ifndef VETHGUARD_SRC_POLICY_RULES_RULE_H
#define VETHGUARD_SRC_POLICY_RULES_RULE_H

#include "policy/load/loader.h"

/* Reads the rules under a key of a file; reports faults. key: "allow", "ask" or "deny". */
void load_rules(struct loader *l, struct load_file *file, const char *key);

struct rule_parse {
	struct loader *l;
	struct tree *tree;
	const struct tree_node *node;
	struct model_rule rule;
};

/* Each reads the value of one key and reports faults. */
void load_rule_to(struct rule_parse *p, struct tree_node *to);
/* Call this after everything else in the rule was read. */
void load_rule_except(struct rule_parse *p, struct tree_node *except);
void load_rule_ports(struct rule_parse *p, struct tree_node *node);
void load_rule_methods(struct rule_parse *p, struct tree_node *node);
void load_rule_paths(struct rule_parse *p, struct tree_node *node);
/* Reads the value of query, headers, form or json; kind: the kind of its conditions. */
void load_rule_conditions(
        struct rule_parse *p, const struct tree_node *node, enum image_condition_kind kind);
/* rule_jsonrpc.c: reads the value of jsonrpc. */
void load_rule_jsonrpc(struct rule_parse *p, const struct tree_node *node);
/* rule_mcp.c, rule_graphql.c, rule_llm.c, rule_git.c, rule_grpc.c: read the values of these
 * keys. */
void load_rule_mcp(struct rule_parse *p, const struct tree_node *node);
void load_rule_graphql(struct rule_parse *p, const struct tree_node *node);
void load_rule_llm(struct rule_parse *p, const struct tree_node *node);
void load_rule_git(struct rule_parse *p, const struct tree_node *node);
void load_rule_grpc(struct rule_parse *p, const struct tree_node *node);
/* A list of names in a rule. */
struct rule_names {
	struct tree_node *node;        /* NULL: the rule has no such list */
	const char *key, *what, *word; /* key and element in messages; the word in descriptions */
	char type;                     /* the first byte of its values in the condition */
	/* NULL, or returns false after it reported a wrong name. */
	bool (*check)(struct rule_parse *p, const struct tree_node *node, struct slice name);
	/* NULL, or does the same and may replace the name. */
	bool (*take)(struct rule_parse *p, const struct tree_node *node, struct slice *name);
};
/* rule_names.c: makes one condition of all lists. Returns false after a report, or if the rule has
 * none of the lists. */
bool load_rule_names(struct rule_parse *p, enum image_condition_kind kind,
        const struct rule_names *lists, size_t count);
/* condition.c: a value in quotes, with its own doubled, so that different values never have the
 * same words. */
struct slice load_condition_quote(struct arena *arena, struct slice text);
/* condition.c: room for one more condition, or NULL after a report. The caller counts it. */
struct model_condition *load_condition_room(struct rule_parse *p, const struct tree_node *node);
/* rule_json.c: false, after a report, if the rule has a condition of that kind on a path that a
 * reader could take for this one. */
bool load_json_is_new(
        struct rule_parse *p, const struct tree_node *key, const struct model_condition *c);
/* rule_json.c: reads a value or a list of values of a JSON condition. False after a report. */
bool load_json_values(struct rule_parse *p, struct tree_node *node, struct model_condition *out);
/* rule_json.c: reads one condition of json. False after a report. */
bool load_json_condition(
        struct rule_parse *p, const struct tree_item *item, struct model_condition *out);
/* Call this after all of them, and after to. */
void load_rule_conditions_done(struct rule_parse *p);
/* rule_tokens.c: reads weights and prices. Call this after load_rule_llm(). */
void load_rule_tokens(struct rule_parse *p);
/* Reports each limit of tokens or cost for which no rule counts. Call this after all rules. */
void load_tokens_check(struct loader *l, struct tree *tree);
/* Reads a decimal number with at most six digits behind the point, as millionths. Returns false if
 * the text is not such a number, or the number is greater than max millionths. */
bool load_decimal(struct slice text, uint64_t max, uint64_t *out);
void load_rule_upgrade(struct rule_parse *p, struct tree_node *node);
/* rule_check.c: load_rule_check() checks the rule and the destinations of to, load_rule_check_to()
 * the destinations of to or except; node: the value of that key. Both report what is impossible and
 * note what is seldom intended. Call them after the rule's other keys were read. */
void load_rule_check(struct rule_parse *p, const struct tree_node *to);
void load_rule_check_to(
        struct rule_parse *p, const struct model_lists *of, const struct tree_node *node);

#endif
