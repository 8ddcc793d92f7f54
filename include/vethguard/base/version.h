/* SPDX-License-Identifier: Apache-2.0 */
/* version: the product's version, which mk/flags.mk sets for every program. */
#ifndef VETHGUARD_BASE_VERSION_H
#define VETHGUARD_BASE_VERSION_H

#ifndef VETHGUARD_VERSION
#error "VETHGUARD_VERSION is missing: mk/flags.mk sets it"
#endif

#define VERSION_QUOTED(x) #x
#define VERSION_QUOTE(x) VERSION_QUOTED(x)
#define VERSION_TEXT VERSION_QUOTE(VETHGUARD_VERSION)

#endif
