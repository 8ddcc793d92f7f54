/* SPDX-License-Identifier: Apache-2.0 */
/* config_read: what the readers of the configuration's parts share. Each reports faults and goes
 * on. */
#ifndef POLICY_CONFIG_READ_H
#define POLICY_CONFIG_READ_H

#include "vethguard/policy/config.h"
#include "yaml_tree.h"

/* A path, relative to the configuration file. False: reported. */
bool config_read_path(
        struct tree *tree, const struct tree_node *node, const char *what, char out[PATH_MAX]);
void config_read_resolver(struct tree *tree, const struct tree_node *map, struct config *config);
void config_read_egress(struct tree *tree, const struct tree_node *map, struct config *config);

#endif
