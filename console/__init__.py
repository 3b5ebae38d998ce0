"""The local web page: server, guard, templates, one module per page. What a form does is in `tasks`."""
