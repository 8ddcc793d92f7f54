# For whoever works on vethguard (docs/development.md).

## make test T=NAME     the unit programs and the integration tests whose names hold NAME (the latter as root)
.PHONY: test
test:
	@tests/lib/run-named '$(T)' $(if $(filter asan,$(VARIANT)),--asan)

## make compile_commands  compile_commands.json for editors and clang tools
.PHONY: compile_commands
compile_commands:
	@mk/compile-commands > compile_commands.json.new && mv compile_commands.json.new compile_commands.json

## make hooks           each commit is looked at by the fast half of lint (contrib/git-hooks/pre-commit)
.PHONY: hooks
hooks:
	@mkdir -p "$$(git rev-parse --git-path hooks)"
	@ln -sf "$$(realpath --relative-to="$$(git rev-parse --git-path hooks)" contrib/git-hooks/pre-commit)" "$$(git rev-parse --git-path hooks)/pre-commit"
	@echo "hooks: $$(git rev-parse --git-path hooks)/pre-commit"
