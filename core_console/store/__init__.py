"""Where documents and logs lie: adapters of the ports `Document` and `Log`, one module each."""
