/* SPDX-License-Identifier: Apache-2.0 */
/* content: reads the JSON text of a bundle. */
#ifndef VETHGUARD_SRC_BUNDLE_CONTENT_H
#define VETHGUARD_SRC_BUNDLE_CONTENT_H

#include "vethguard/bundle/signed_bundle.h"

/* Reads the content of b->memory into b. Returns SIGNED_BUNDLE_GOOD, or the fault with why. */
enum signed_bundle_fault bundle_content_read(
        struct signed_bundle *b, char why[SIGNED_BUNDLE_WHY_MAX]);

#endif
