/* SPDX-License-Identifier: Apache-2.0 */
/* config_read: shared by the readers of the configuration's parts. Each reader reports faults and
 * goes on. */
#ifndef VETHGUARD_SRC_POLICY_CONFIG_READ_H
#define VETHGUARD_SRC_POLICY_CONFIG_READ_H

#include "vethguard/policy/config.h"
#include "policy/yaml/yaml_tree.h"

#define CONFIG_URL_MAX 1024 /* bytes of the URL of a key set or bundle */

/* Reads a path, relative to the configuration file. False: reported. */
bool config_read_path(
        struct tree *tree, const struct tree_node *node, const char *what, char out[PATH_MAX]);
/* key_file.c: reads "file:PATH", relative to the configuration file; the file holds a secret, which
 * is not read. */
void config_read_key_file(
        struct tree *tree, const struct tree_node *node, const char *what, char out[PATH_MAX]);
/* Moves the password of a URL out of the text into out. Returns 0 or -errno. out stays empty if
 * there is more than one password. */
int config_take_password(char *text, size_t n, struct secret *out);
/* Decodes percent-encoding (RFC 3986 section 2.1) in place and zeroes the bytes left over. False:
 * malformed, or a control. */
bool config_decode(char *p, size_t *n);
/* token.c: adds "NAME=VALUE", or VALUE if name is empty. Returns false if there is no room. */
bool config_add_text(struct config_texts *texts, struct slice name, struct slice value);
/* token.c: reads ca.key as a pkcs11: URI; ca.token; and tokens. */
void config_read_token_key(
        struct tree *tree, const struct tree_node *node, struct slice text, struct config *config);
void config_read_token(struct tree *tree, const struct tree_node *map, struct config_token *token);
void config_read_tokens(struct tree *tree, const struct tree_node *map, struct config *config);
void config_read_ca(struct tree *tree, const struct tree_node *map, struct config *config);
void config_gateway_init(struct config_gateway *gateway); /* sets the defaults */
void config_read_gateway(
        struct tree *tree, const struct tree_node *map, struct config_gateway *gateway);
/* hook.c */
void config_read_ask(struct tree *tree, const struct tree_node *map, struct config_ask *ask);
/* quota.c */
void config_read_quota(struct tree *tree, const struct tree_node *map, struct config_quota *quota);
/* gateway_udp.c: reads udp_ports and udp_address. */
void config_read_gateway_udp(
        struct tree *tree, const struct tree_node *map, struct config_gateway *gateway);
/* signer.c */
void config_read_signers(
        struct tree *tree, const struct tree_node *list, struct config_gateway *gateway);
/* bundles.c */
void config_read_bundles(struct tree *tree, const struct tree_node *list, struct config *config);
/* Reads a path, or the name of a file in a bundle: "bundle:NAME/FILE", which has to end with suffix
 * and is kept as it is. False: reported. */
bool config_read_path_or_bundle(struct tree *tree, const struct tree_node *node, const char *what,
        const char *suffix, char out[PATH_MAX]);
/* Reports signers that name a bundle which is not configured. */
void config_check_bundle_names(struct tree *tree, const struct config *config);
void config_read_resolver(struct tree *tree, const struct tree_node *map, struct config *config);
/* is_private: the file may hold a password. */
void config_read_egress(
        struct tree *tree, const struct tree_node *map, bool is_private, struct config *config);

#endif
