"""What a fit returns: scores, items, summaries, saving and loading."""
