# The modules, by layers (mk/layers).
MODULES := $(shell sed -n 's/^layer //p' mk/layers)

# One archive per module; a program names the archives it may link (programs.mk).
define module_rules
SRC_$(1) := $$(filter-out %/main.c %_main.c,$$(wildcard src/$(1)/*.c src/$(1)/*/*.c))
OBJ_$(1) := $$(SRC_$(1):src/%.c=$$(OBJ)/%.o)
$$(LIB)/libvg_$(1).a: $$(OBJ_$(1))
	@mkdir -p $$(@D)
	rm -f $$@ && $$(AR) rcs $$@ $$^
endef
$(foreach m,$(MODULES),$(eval $(call module_rules,$(m))))

$(OBJ)/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(WARNINGS) $(CFLAGS) -MMD -MP -c -o $@ $<

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
