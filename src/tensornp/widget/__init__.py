"""Interactive views: Python beside plain ES modules and CSS, without a build step."""
