/* SPDX-License-Identifier: Apache-2.0 */
/* match: finds what is of a known format in a text as it is written. */
#ifndef VETHGUARD_SRC_DLP_MATCH_H
#define VETHGUARD_SRC_DLP_MATCH_H

#include "vethguard/dlp/scan.h"

/* The first format in the text that the question does not let pass, or DLP_NONE. */
uint32_t match_find(const struct dlp_question *question, const uint8_t *text, size_t n);

#endif
