/* SPDX-License-Identifier: Apache-2.0 */
/* source: reads credentials, and where a credential's value comes from. All functions report faults
 * and go on. The tree is set to secretive meanwhile, because somebody may have written a secret
 * into the policy there. */
#ifndef VETHGUARD_SRC_POLICY_CREDENTIALS_SOURCE_H
#define VETHGUARD_SRC_POLICY_CREDENTIALS_SOURCE_H

#include "policy/load/loader.h"

/* credentials.c: reads the credentials of a file. */
void load_credentials(struct loader *l, struct load_file *file);
/* placeholder.c: reads the placeholder's shape of a credential whose variable is known. */
void load_placeholder(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out);

/* Reads source: of a credential's mapping, or of an override of it. policy: path of the file with
 * the text, which relative paths start from. */
void load_source(struct tree *tree, const struct tree_item *item, struct slice policy,
        struct model_credential *out);
/* Reads the value itself, for a source that does not belong to a credential. */
void load_source_value(struct tree *tree, const struct tree_node *node, struct slice policy,
        struct policy_credential *out);
/* Reads ttl: and timeout:; call after load_source(). */
void load_source_times(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out);

/* inject.c: reads inject: and the keys that go with it. */
void load_inject(struct tree *tree, const struct tree_node *map, struct policy_credential *out);

/* True if a credential can be sent in a field of that name. Reports faults. */
bool load_check_field(struct tree *tree, const struct tree_node *node, struct slice name);
/* fields.c: read what goes with headers: and with inject: hmac. */
void load_headers(struct tree *tree, const struct tree_node *map, struct policy_credential *out);
void load_places(struct tree *tree, const struct tree_node *map, struct policy_credential *out);
void load_hmac(struct tree *tree, const struct tree_node *map, struct policy_credential *out);
/* registry.c: reads what goes with inject: docker-registry, except username. */
void load_registry(struct tree *tree, const struct tree_node *map, struct policy_credential *out);
/* Notes credentials whose token service no rule with the credential allows. */
void load_registry_note(
        const struct model *model, const uint8_t *image, size_t size, struct diag_list *notes);

/* source_fetch.c: true if word is a source that is asked over HTTPS: "vault", "oauth2", .... */
bool load_is_fetched(struct slice word);
/* Reads the mapping of such a source; item's key says which. */
void load_fetch(struct tree *tree, const struct tree_item *item, struct slice policy,
        struct policy_credential *out);

/* source_cloud.c: checks how such a source logs in to a cloud, and adds what it leaves out. */
void load_cloud(struct tree *tree, const struct tree_item *item, struct policy_credential *out);

/* True if name can be an environment variable's name of at most 64 bytes. Reports faults. */
bool load_check_variable(
        struct tree *tree, const struct tree_node *node, const char *what, struct slice name);
bool load_is_among(struct slice word, const char *const words[]);

#endif
