"""A Reply's document into Slack blocks: nothing is computed here that the document does not say."""
