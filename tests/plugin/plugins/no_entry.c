/* A shared object that is no plugin. */
int some_other_function(void);

int some_other_function(void)
{
    return 7;
}
