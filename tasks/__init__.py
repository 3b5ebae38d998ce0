"""What jobs and commands do: read through `sources`, decide through `pipelines`, write through `vault`."""
