"""The derived index: SQL, embeddings, ranking, the recall engine and its service. It can be rebuilt at any time."""
