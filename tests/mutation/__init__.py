"""Which changes of the code that moves money does no test notice? `make mutants` counts them.

    rate == killed / (killed + survived)          what is set aside as equivalent is in neither

`operators` changes one place of a module, `reach` finds the tests that come by there, `trial` runs
them on the changed module, quickest first, and `record` keeps what came out. `money` names the
modules and says why; `equivalent.toml` names the changes that change nothing, each with its reason.
Why no library does it: decision 0064.
"""
