"""The life of an idea: incubator, questions to the user, Ideas.md, research and related notes."""
