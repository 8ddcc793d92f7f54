/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VETHGUARD_SRC_TOKEN_RESULT_H
#define VETHGUARD_SRC_TOKEN_RESULT_H

#include "token/cryptoki.h"

/* Returns the meaning of a module's result, for people; borrowed until the next call. */
const char *result_text(ck_rv rv);

#endif
