# demo · test · test-all · check · docs · docs-site · bench · fuzz · soak · clean. Everything runs in .venv, which the first target creates.
# PYTHON=/path/to/python selects the interpreter, VENV=dir the place of the environment. uv installs it, if there is one.

VENV ?= .venv
RUN = $(VENV)/bin/python

.PHONY: demo test test-all check docs docs-site bench fuzz soak clean install

demo: $(VENV)/installed-demo
	@$(RUN) -m wirelint demo

# The tests start about a hundred processes; without bytecode files each process would compile every module again.
# A file's tests run in one worker (`loadfile`), because they share a proxy.
demo test test-all: export PYTHONDONTWRITEBYTECODE =

test: install
	$(RUN) -m pytest -q -n auto --dist loadfile --no-loadscope-reorder

test-all: install
	$(RUN) -m pytest -q -n auto --dist loadfile --no-loadscope-reorder --all

check: install
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m mypy rules addons tests

docs: install
	$(RUN) -m wirelint docs

# A folder of HTML pages, `site/`. A dead link or a page outside of the navigation is an error.
docs-site: docs $(VENV)/installed-docs
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet
	@echo "site/index.html"

bench: install
	$(RUN) -m tests.bench

# ARGS='--seed 7 --bodies 100000', ARGS='--minutes 30'
fuzz: install
	$(RUN) -m tests.fuzz $(ARGS)

soak: install
	$(RUN) -m tests.fuzz.soak $(ARGS)

install: $(VENV)/installed

# Three stamps, one environment: the demo needs two SDKs, the tests those of every vendor, the site mkdocs. `[dev]` includes `[demo]`.
# The interpreter's own pip installs into it if it can: a pip in the environment takes 5 s, and the demo needs none.
$(VENV)/installed: EXTRA = dev
$(VENV)/installed-demo: EXTRA = demo
$(VENV)/installed-docs: EXTRA = docs
$(VENV)/installed $(VENV)/installed-demo $(VENV)/installed-docs: pyproject.toml
	@py='$(PYTHON)'; \
	if [ -z "$$py" ]; then \
	  for c in $(RUN) python3 python python3.13 python3.12 python3.14 python3.11 "$$HOME"/.pyenv/versions/3.1[1-9]*/bin/python; do \
	    if "$$c" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then py=$$c; break; fi; \
	  done; \
	fi; \
	if [ -z "$$py" ]; then echo 'wirelint needs Python 3.11 or newer with venv, and found none. Install one, or name it: make PYTHON=/path/to/python3' >&2; exit 2; fi; \
	"$$py" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "PYTHON=$$py is not a Python 3.11 or newer; name another: make PYTHON=/path/to/python3" >&2; exit 2; }; \
	echo "installing wirelint[$(EXTRA)] into $(VENV) with $$("$$py" --version)"; \
	"$$py" -m venv $(if $(filter demo,$(EXTRA)),--without-pip) $(VENV) && { (uv pip install --quiet --python $(RUN) -e '.[$(EXTRA)]') 2>/dev/null || { \
	  pip() { "$$py" -m pip --python $(RUN) "$$@"; }; \
	  pip --version >/dev/null 2>&1 || { $(RUN) -m ensurepip >/dev/null 2>&1; pip() { $(RUN) -m pip "$$@"; }; }; \
	  pip install --quiet --no-compile --disable-pip-version-check -e '.[$(EXTRA)]'; }; }
	@touch $@ $(if $(filter dev,$(EXTRA)),$(VENV)/installed-demo)

clean:
	rm -rf $(VENV) dist build site .pytest_cache .mypy_cache .ruff_cache
